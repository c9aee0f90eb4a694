/// A key of a typed view, for an update of several views in one step.
///
/// ```swift
/// try await bytes.update(inbox.key("7"), archive.key("7"), counts.key("archived")) { note, archived, count in
///   archived = note
///   note = nil
///   count = (count ?? 0) + 1
/// }
/// ```
///
/// You get one from ``TypedView/key(_:)-(StoreKey)``.
public struct ViewKey<Base: DataStore, Value: Sendable>: Sendable where Base.Value == [UInt8] {
  /// The view.
  public let view: TypedView<Base, Value>

  /// The key in the view.
  public let key: StoreKey
}

extension TypedView {
  /// Returns a key of this view, for ``DataStore/update(_:_:_:)``.
  ///
  /// - Parameter key: The key in the view.
  public func key(_ key: StoreKey) -> ViewKey<Base, Value> {
    ViewKey(view: self, key: key)
  }

  /// Returns a key of this view, for ``DataStore/update(_:_:_:)``.
  ///
  /// - Parameter key: The text of the key in the view.
  @_disfavoredOverload
  public func key(_ key: some StringProtocol) -> ViewKey<Base, Value> {
    self.key(StoreKey(String(key)))
  }
}

extension DataStore where Value == [UInt8] {
  /// Reads values of two views of this store, passes them to a closure that can change them, and writes them back, as one
  /// step.
  ///
  /// ```swift
  /// try await bytes.update(inbox.key("7"), archive.key("7")) { note, archived in
  ///   archived = note
  ///   note = nil
  /// }
  /// ```
  ///
  /// No other writer of the store comes between the reading and the writing. There are forms for three and four keys,
  /// too. The keys must be distinct, and the prefix of no view may begin with the prefix of another. To update any number
  /// of keys of one view, call ``update(_:_:)`` of the view.
  ///
  /// - Parameters:
  ///   - first: A key of a view of this store.
  ///   - second: Another key of the same or another view of this store.
  ///   - body: A closure that receives each value, or `nil` if the key is missing. It leaves the new values in its
  ///     arguments, or `nil` to remove a key. It must not call the store, and it may run more than once, as that of
  ///     ``update(_:_:)``.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws, unchanged, with nothing changed in the store. ``StoreError`` with
  ///   `invalidArgument` if a key occurs twice, if the prefixes of two views overlap, or if a view belongs to another
  ///   store, as far as stores are objects of classes; else as ``update(_:_:)``, with the keys of the view.
  @discardableResult
  public func update<First: Sendable, Second: Sendable, Result: Sendable>(
    _ first: ViewKey<Self, First>, _ second: ViewKey<Self, Second>,
    _ body: @escaping @Sendable (inout First?, inout Second?) throws -> Result
  ) async throws -> Result {
    var keys = JoinedKeys(self)
    let slot1 = try keys.add(first)
    let slot2 = try keys.add(second)
    return try await keys.update { slots in
      var (value1, value2) = (try slot1.value(in: slots), try slot2.value(in: slots))
      let result = try body(&value1, &value2)
      slots = [try slot1.encoded(value1, replacing: slots), try slot2.encoded(value2, replacing: slots)]
      return result
    }
  }

  /// Updates three keys of views of this store as one step; see ``update(_:_:_:)``.
  @discardableResult
  public func update<First: Sendable, Second: Sendable, Third: Sendable, Result: Sendable>(
    _ first: ViewKey<Self, First>, _ second: ViewKey<Self, Second>, _ third: ViewKey<Self, Third>,
    _ body: @escaping @Sendable (inout First?, inout Second?, inout Third?) throws -> Result
  ) async throws -> Result {
    var keys = JoinedKeys(self)
    let slot1 = try keys.add(first)
    let slot2 = try keys.add(second)
    let slot3 = try keys.add(third)
    return try await keys.update { slots in
      var (value1, value2) = (try slot1.value(in: slots), try slot2.value(in: slots))
      var value3 = try slot3.value(in: slots)
      let result = try body(&value1, &value2, &value3)
      slots = [
        try slot1.encoded(value1, replacing: slots), try slot2.encoded(value2, replacing: slots),
        try slot3.encoded(value3, replacing: slots),
      ]
      return result
    }
  }

  /// Updates four keys of views of this store as one step; see ``update(_:_:_:)``.
  @discardableResult
  public func update<First: Sendable, Second: Sendable, Third: Sendable, Fourth: Sendable, Result: Sendable>(
    _ first: ViewKey<Self, First>, _ second: ViewKey<Self, Second>, _ third: ViewKey<Self, Third>,
    _ fourth: ViewKey<Self, Fourth>,
    _ body: @escaping @Sendable (inout First?, inout Second?, inout Third?, inout Fourth?) throws -> Result
  ) async throws -> Result {
    var keys = JoinedKeys(self)
    let slot1 = try keys.add(first)
    let slot2 = try keys.add(second)
    let slot3 = try keys.add(third)
    let slot4 = try keys.add(fourth)
    return try await keys.update { slots in
      var (value1, value2) = (try slot1.value(in: slots), try slot2.value(in: slots))
      var (value3, value4) = (try slot3.value(in: slots), try slot4.value(in: slots))
      let result = try body(&value1, &value2, &value3, &value4)
      slots = [
        try slot1.encoded(value1, replacing: slots), try slot2.encoded(value2, replacing: slots),
        try slot3.encoded(value3, replacing: slots), try slot4.encoded(value4, replacing: slots),
      ]
      return result
    }
  }
}

/// The keys of views that are updated in one step.
private struct JoinedKeys<Base: DataStore> where Base.Value == [UInt8] {
  /// A key and its position among the stored values.
  struct Slot<Value: Sendable>: Sendable {
    let view: TypedView<Base, Value>
    let storedKey: StoreKey
    let index: Int

    func value(in slots: [[UInt8]?]) throws -> Value? {
      try slots[index].map { try view.decode($0, storedAs: storedKey, during: .update) }
    }

    func encoded(_ value: Value?, replacing slots: [[UInt8]?]) throws -> [UInt8]? {
      try value.map { try view.encode($0, storedAs: storedKey, replacing: slots[index], during: .update) }
    }
  }

  private let base: Base
  private var views = JoinedViews<Base>()
  private var storedKeys: [StoreKey] = []

  init(_ base: Base) {
    self.base = base
  }

  /// Adds a key.
  ///
  /// - Throws: ``StoreError`` with `invalidKey`.
  mutating func add<Value>(_ key: ViewKey<Base, Value>) throws -> Slot<Value> {
    views.add(key.view)
    let storedKey = try key.view.storedKey(key.key, for: .update)
    storedKeys.append(storedKey)
    return Slot(view: key.view, storedKey: storedKey, index: storedKeys.count - 1)
  }

  /// Updates the stored values of the keys; see ``DataStore/update(_:_:)``.
  ///
  /// - Parameter body: A closure whose errors already name keys of the views.
  func update<Result: Sendable>(
    _ body: @escaping @Sendable (inout [[UInt8]?]) throws -> Result
  ) async throws -> Result {
    try views.check(base, for: .update)
    do {
      return try await views.translatingErrors {
        try await base.update(storedKeys) { slots in try BodyError.wrapping { try body(&slots) } }
      }
    } catch let bodyError as BodyError {
      throw bodyError.error
    }
  }
}
