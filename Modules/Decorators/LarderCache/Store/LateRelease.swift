import Synchronization

/// Holds on to copies that leave a cache while a lock is held, so that they are released after it.
///
/// The end of a value may run code of its user, which may call the store, and would wait for the lock for ever.
final class LateRelease: Sendable {
  @TaskLocal private static var current: LateRelease?

  private let copies = Mutex<[CachedCopy]>([])

  private init() {}

  /// Does something under a lock, and afterwards releases what left the cache meanwhile.
  ///
  /// - Parameter body: Takes the lock, and gives it back.
  static func after<Result>(_ body: () -> Result) -> Result {
    let release = LateRelease()
    return withExtendedLifetime(release) { $current.withValue(release, operation: body) }
  }

  /// Keeps a copy until the lock is given back that this thread holds, if it does.
  ///
  /// - Parameter copy: The copy.
  static func keep(_ copy: CachedCopy) {
    guard let current else { return }
    current.copies.withLock { $0.append(copy) }
  }
}
