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
  /// of keys of one view, call ``update(_:_:)`` of the view. An
  /// argument whose value stays the same is not written.
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
    try await update(joining: first, second) { values in try body(&values.0, &values.1) }
  }

  /// Updates three keys of views of this store as one step; see ``update(_:_:_:)``.
  @discardableResult
  public func update<First: Sendable, Second: Sendable, Third: Sendable, Result: Sendable>(
    _ first: ViewKey<Self, First>, _ second: ViewKey<Self, Second>, _ third: ViewKey<Self, Third>,
    _ body: @escaping @Sendable (inout First?, inout Second?, inout Third?) throws -> Result
  ) async throws -> Result {
    try await update(joining: first, second, third) { values in try body(&values.0, &values.1, &values.2) }
  }

  /// Updates four keys of views of this store as one step; see ``update(_:_:_:)``.
  @discardableResult
  public func update<First: Sendable, Second: Sendable, Third: Sendable, Fourth: Sendable, Result: Sendable>(
    _ first: ViewKey<Self, First>, _ second: ViewKey<Self, Second>, _ third: ViewKey<Self, Third>,
    _ fourth: ViewKey<Self, Fourth>,
    _ body: @escaping @Sendable (inout First?, inout Second?, inout Third?, inout Fourth?) throws -> Result
  ) async throws -> Result {
    try await update(joining: first, second, third, fourth) { values in
      try body(&values.0, &values.1, &values.2, &values.3)
    }
  }

  /// Updates keys of views of this store as one step; see ``update(_:_:_:)``.
  private func update<each Item: Sendable, Result: Sendable>(
    joining keys: repeat ViewKey<Self, each Item>,
    by body: @escaping @Sendable (inout (repeat (each Item)?)) throws -> Result
  ) async throws -> Result {
    var views = JoinedViews<Self>()
    var storedKeys: [StoreKey] = []
    func slot<Element>(_ key: ViewKey<Self, Element>) throws -> ViewSlot<Self, Element> {
      views.add(key.view)
      let storedKey = try key.view.storedKey(key.key, for: .update)
      defer { storedKeys.append(storedKey) }
      return ViewSlot(view: key.view, storedKey: storedKey, index: storedKeys.count)
    }
    let slots = (repeat try slot(each keys))
    try views.check(self, for: .update)
    // The errors thrown here already name keys of the views, so they pass the translation as results.
    return try await views.translatingErrors {
      try await update(deciding: storedKeys) { stored in
        UpdateDecision(catching: {
          var values = (repeat try (each slots).value(in: stored))
          let result = try body(&values)
          repeat try (each slots).assign(each values, to: &stored)
          return .commit(result)
        })
      }
    }.get()
  }
}

/// A key of a view that is updated together with others, and its position among the stored values.
private struct ViewSlot<Base: DataStore, Value: Sendable>: Sendable where Base.Value == [UInt8] {
  let view: TypedView<Base, Value>
  let storedKey: StoreKey
  let index: Int

  func value(in slots: UpdateSlots<[UInt8]>) throws -> Value? {
    try slots[index].map { try view.decode($0, storedAs: storedKey, during: .update) }
  }

  func assign(_ value: Value?, to slots: inout UpdateSlots<[UInt8]>) throws {
    let bytes = try value.map {
      try view.encode($0, storedAs: storedKey, replacing: slots[index], during: .update)
    }
    if bytes != slots[index] { slots[index] = bytes }
  }
}
