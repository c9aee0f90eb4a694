/// What the age of a ``CachedCopy`` means.
struct CopyLifetime: Sendable {
  /// What a reader does with a copy.
  enum Stage: Sendable, Hashable {
    /// Uses it.
    case fresh
    /// Uses it, and has it loaded anew.
    case due
    /// Uses it only where old copies will do, and then has it loaded anew.
    case old
    /// Does not use it.
    case over
  }

  private let valueLifetime: Duration?
  private let missingLifetime: Duration?
  private let refreshAge: Duration?

  init<Value>(_ options: CachedStoreOptions<Value>) {
    // Without a time for old copies the cache itself removes those whose time is over.
    valueLifetime = options.staleLifetime > .zero ? options.expiry.afterWrite : nil
    missingLifetime = options.missingLifetime
    refreshAge = options.refreshAge
  }

  /// Whether the age of any copy matters.
  var matters: Bool { valueLifetime != nil || missingLifetime != nil || refreshAge != nil }

  /// Tells what is to be done with a copy.
  ///
  /// - Parameters:
  ///   - isMissing: Whether it is the knowledge that the key is missing.
  ///   - age: Its age.
  func stage(isMissing: Bool, age: Duration) -> Stage {
    if isMissing, let missingLifetime, age >= missingLifetime { return .over }
    if let valueLifetime, age >= valueLifetime { return .old }
    if let refreshAge, age >= refreshAge { return .due }
    return .fresh
  }
}
