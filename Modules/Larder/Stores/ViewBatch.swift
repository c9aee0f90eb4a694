/// A sequence of changes to several typed views of one store of bytes, which take effect all together or not at all.
///
/// ```swift
/// let notes = bytes.typed(Note.self, prefix: "note/", codec: .json())
/// let counts = bytes.typed(Int.self, prefix: "count/", codec: .json())
///
/// var batch = ViewBatch<LMDBStore<[UInt8]>>()
/// batch.setValue(note, forKey: "7", in: notes)
/// batch.setValue(1, forKey: "notes", in: counts)
/// try await bytes.apply(batch)
/// ```
///
/// The views must belong to the store that applies the batch, and the prefix of none may begin with the prefix of
/// another. A view that you create several times, with the same prefix, type and codec, is one view.
///
/// Values are encoded when the batch is applied. If new values depend on stored ones, use
/// ``DataStore/update(_:_:_:)`` instead.
public struct ViewBatch<Base: DataStore>: Sendable where Base.Value == [UInt8] {
  private typealias EncodedChange = @Sendable (inout BulkWork.Allowance) throws -> Change<[UInt8]>

  private var views = JoinedViews<Base>()
  private var changes: [EncodedChange] = []

  /// Creates a batch without changes.
  public init() {}

  /// The number of changes.
  public var count: Int { changes.count }

  /// A Boolean value that indicates whether the batch has no changes.
  public var isEmpty: Bool { changes.isEmpty }

  /// Appends a change that stores a value under a key of a view, replacing any other.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key in the view.
  ///   - view: The view.
  public mutating func setValue<Value>(_ value: Value, forKey key: StoreKey, in view: TypedView<Base, Value>) {
    append(.set(key, value), to: view)
  }

  /// Appends a change that removes a key of a view.
  ///
  /// - Parameters:
  ///   - key: The key in the view, which may be missing.
  ///   - view: The view.
  public mutating func removeValue<Value>(forKey key: StoreKey, in view: TypedView<Base, Value>) {
    append(.remove(key), to: view)
  }

  /// Appends a change that removes every key of a range of a view.
  ///
  /// - Parameters:
  ///   - range: The keys to remove. Defaults to all keys of the view.
  ///   - view: The view.
  public mutating func removeAll<Value>(in range: KeyRange = .all, of view: TypedView<Base, Value>) {
    append(.removeAll(range), to: view)
  }

  /// Appends a change to a view.
  ///
  /// - Parameters:
  ///   - change: The change, with the key in the view.
  ///   - view: The view.
  public mutating func append<Value>(_ change: Change<Value>, to view: TypedView<Base, Value>) {
    views.add(view)
    changes.append { allowance in
      if let key = change.key { try view.information.check(key, for: .apply) }
      return try view.storedChange(change, &allowance)
    }
  }

  fileprivate func apply(to base: Base) async throws {
    try views.check(base, for: .apply)
    try base.information.checkWritable(for: .apply)
    let encoded = try await BulkWork.run(atMost: changes.count) { [changes] allowance in
      ChangeBatch(try changes.map { try $0(&allowance) })
    }
    try await views.translatingErrors { try await base.apply(encoded) }
  }
}

extension DataStore where Value == [UInt8] {
  /// Applies changes to several views of this store, all or none of them.
  ///
  /// The changes take effect in sequence.
  ///
  /// - Parameter changes: The changes. An empty batch is a no-op.
  /// - Throws: ``StoreError`` with `invalidArgument` if the prefixes of two views overlap, or if a view belongs to
  ///   another store, as far as stores are objects of classes; else as ``apply(_:)`` of the store, with the keys of the
  ///   view.
  public func apply(_ changes: ViewBatch<Self>) async throws {
    try await changes.apply(to: self)
  }
}

/// The views that take part in one step.
struct JoinedViews<Base: DataStore>: Sendable where Base.Value == [UInt8] {
  private struct View: Sendable {
    let base: Base
    let prefix: StoreKey
    let type: ObjectIdentifier
    let codecName: String
    let translate: @Sendable (StoreError) -> StoreError

    func isSameView(as other: View) -> Bool {
      prefix == other.prefix && type == other.type && codecName == other.codecName
        && JoinedViews.isSame(base, other.base)
    }
  }

  /// The different views.
  private var views: [View] = []

  mutating func add<Value>(_ view: TypedView<Base, Value>) {
    let view = View(
      base: view.base, prefix: view.prefix, type: ObjectIdentifier(Value.self), codecName: view.codecName,
      translate: { view.translated($0) })
    if !views.contains(where: { $0.isSameView(as: view) }) { views.append(view) }
  }

  /// Throws `invalidArgument` if a view belongs to another store, or if the prefixes of two views overlap.
  func check(_ base: Base, for operation: StoreOperation) throws {
    for (index, view) in views.enumerated() {
      guard JoinedViews.isSame(view.base, base) else {
        throw StoreError(
          .invalidArgument, during: operation, store: base.information.name,
          message: "a view belongs to a different store; all views must be views of the store that is called")
      }
      for other in views[..<index] where view.prefix.hasPrefix(other.prefix) || other.prefix.hasPrefix(view.prefix) {
        throw StoreError(
          .invalidArgument, during: operation, store: base.information.name, key: max(view.prefix, other.prefix),
          message: "the prefixes of two views overlap; give each view a prefix that no other prefix begins with")
      }
    }
  }

  /// Runs an operation of the base, and translates the key in its error into that of its view.
  func translatingErrors<Result>(_ operation: () async throws -> Result) async throws -> Result {
    do {
      return try await operation()
    } catch let error as StoreError {
      guard let key = error.key, let view = views.first(where: { key.hasPrefix($0.prefix) }) else { throw error }
      throw view.translate(error)
    }
  }

  /// Returns whether two stores are the same object, or cannot be told apart because they are values.
  private static func isSame(_ left: Base, _ right: Base) -> Bool {
    guard Base.self is any AnyObject.Type else { return true }
    return left as AnyObject === right as AnyObject
  }
}
