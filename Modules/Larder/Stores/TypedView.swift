/// A store of values of one type that is a part of a store of bytes.
///
/// A store of bytes can hold several types, each under a prefix of its own:
///
/// ```swift
/// let users = bytes.typed(User.self, prefix: "user/", codec: .json())
/// let sessions = bytes.typed(Session.self, prefix: "session/", codec: .json())
/// try await users.setValue(ada, forKey: "7")          // stored as "user/7"
/// ```
///
/// A view contains the entries whose keys begin with its prefix and are longer than it. The keys of the view are
/// without the prefix, and `removeAll()` removes only the entries of the view. No prefix may begin with another one. Several
/// views of a store can change together: see ``DataStore/transaction(_:)``.
///
/// A store of bytes does not record which codec wrote a value, so your program must use the right one. A view that you open
/// with ``DataStore/typed(_:prefix:recording:)`` does.
///
/// A view keeps no entries itself. Beside the work of the codec, an operation costs one copy of the bytes of each
/// value. Closing a view closes its base, and with it all other views of the base.
public struct TypedView<Base: DataStore, Value: Sendable>: DataStore where Base.Value == [UInt8] {
  /// The store of bytes.
  public let base: Base

  /// The prefix of the view's keys in the store of bytes.
  public let prefix: StoreKey

  let coder: ValueCoder<Value>

  /// The codec, for the comparison with a record; see ``CodecRecord``.
  public var codecRecord: CodecRecord { coder.codecRecord }

  /// A Boolean value that indicates whether the base has a record of the view's codec; see
  /// ``DataStore/typed(_:prefix:recording:)``.
  let recordsCodec: Bool

  /// The name, the limits and the durability of the base.
  ///
  /// The name does not contain the prefix, because names appear in logs and metrics, and a prefix may name a person.
  public let information: StoreInformation

  /// The running reads, including those that still decode values after the base has returned.
  let reads: RunningOperations
}

extension TypedView {
  /// Creates a view of a store.
  ///
  /// - Parameters:
  ///   - base: The store of bytes.
  ///   - prefix: The prefix of the view's keys in the store of bytes. Defaults to an empty prefix. The maximum length of a key
  ///     decreases by the length of the prefix.
  ///   - codec: The codec of the values.
  public init(_ base: Base, prefix: StoreKey = "", codec: some Codec<Value>) {
    self.init(base, prefix: prefix, codec: codec, recordsCodec: false)
  }

  init(_ base: Base, prefix: StoreKey, codec: some Codec<Value>, recordsCodec: Bool) {
    self.base = base
    self.prefix = prefix
    self.recordsCodec = recordsCodec
    var information = base.information
    information.identity = information.identity?.view(withPrefix: prefix)
    if recordsCodec { information.maximumChangeCount = information.maximumChangeCount.map { max(1, $0 - 1) } }
    if !prefix.isEmpty {
      information.maximumKeyLength = max(0, information.maximumKeyLength - prefix.count)
    }
    information.noteEncryption(by: codec)
    self.information = information
    coder = ValueCoder(codec: codec, store: information.name)
    reads = RunningOperations()
  }

  // MARK: Reading

  /// Returns the value of a key; see ``DataStore/value(forKey:)``.
  public func value(forKey key: StoreKey) async throws -> Value? {
    let storedKey = try storedKey(key, for: .value)
    return try await reads.run(.value, of: information) {
      let bytes = try await translatingErrors { try await base.value(forKey: storedKey) }
      return try bytes.map { try decode($0, storedAs: storedKey, during: .value) }
    }
  }

  /// Returns the values of several keys as they are at one moment; see ``DataStore/values(forKeys:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await reads.run(.values, of: information) {
      let storedKeys = keys.map(storedKey)
      let values = try await translatingErrors { try await base.values(forKeys: storedKeys) }
      return try await decode(values, storedAs: storedKeys, during: .values)
    }
  }

  func decode(
    _ values: [[UInt8]?], storedAs keys: [StoreKey], during operation: StoreOperation
  ) async throws -> [Value?] {
    try await BulkWork.decode(values, forKeys: keys) { [self] in try decode($0, storedAs: $1, during: operation) }
  }

  /// Returns the first entries of a range; see ``DataStore/entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await reads.run(.entries, of: information) {
      let entries = try await translatingErrors {
        try await base.entries(in: storedRange(range), limit: limit, order: order)
      }
      return try await BulkWork.run(atMost: entries.count) { [self] allowance in
        try entries.map { entry in
          try allowance.take(entry.value.count)
          let value = try decode(entry.value, storedAs: entry.key, during: .entries)
          return StoreEntry(key: viewKey(entry.key), value: value)
        }
      }
    }
  }

  /// Returns the first keys of a range; see ``DataStore/keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await translatingErrors { try await base.keys(in: storedRange(range), limit: limit, order: order).map(viewKey) }
  }

  /// Returns the number of entries in a range; see ``DataStore/count(in:)``.
  public func count(in range: KeyRange) async throws -> Int {
    try await translatingErrors { try await base.count(in: storedRange(range)) }
  }

  // MARK: Writing

  /// Applies several changes atomically; see ``DataStore/apply(_:)``.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    let format = codecRecord.format
    let batch = try await BulkWork.run(atMost: changes.count) { [self] allowance in
      ChangeBatch(try changes.changes.map { try storedChange($0, &allowance) })
    }
    try await translatingErrors { try await recordsCodec ? applyRecording(batch, in: format) : base.apply(batch) }
  }

  /// Reads, changes and writes back the values of several keys as one step; see ``DataStore/update(deciding:_:)``.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    let storedKeys = keys.map(storedKey)
    // The errors thrown here already name keys of the view, so they pass the translation as results.
    return try await translatingErrors {
      try await base.update(deciding: storedKeys + recordKeys) { stored in
        UpdateDecision(catching: {
          // Before anything is decoded or encoded.
          let record = try newRecord(in: stored, during: .update)
          var slots = UpdateSlots(
            stored: try zip(storedKeys, stored).map { key, bytes in
              try bytes.map { try decode($0, storedAs: key, during: .update) }
            })
          let decision = body(&slots)
          guard decision.isCommit else { return decision }
          for index in slots.assignedIndices {
            stored[index] = try slots[index].map {
              try encode($0, storedAs: storedKeys[index], replacing: stored[index], during: .update)
            }
          }
          if let record, !slots.assignedIndices.isEmpty { stored[keys.count] = record }
          return decision
        })
      }
    }.get()
  }

  /// Ensures that every earlier write to the base survives a power failure; see ``DataStore/synchronize()``.
  public func synchronize() async throws {
    try await translatingErrors { try await base.synchronize() }
  }

  /// Closes the base, and with it all other views of the base; see ``DataStore/close()``.
  public func close() async throws {
    await reads.close()
    try await translatingErrors { try await base.close() }
  }

  // MARK: Keys

  /// The translation of the view's keys.
  var mapping: KeyPrefix { KeyPrefix(prefix) }

  /// Returns the key of the base for a key of the view.
  ///
  /// - Throws: ``StoreError`` with `invalidKey`.
  func storedKey(_ key: StoreKey, for operation: StoreOperation) throws -> StoreKey {
    if key.isEmpty || key.count + prefix.count > StoreKey.maximumLength {
      try information.check(key, for: operation)
    }
    return storedKey(key)
  }

  func storedKey(_ key: StoreKey) -> StoreKey { mapping.storedKey(key) }

  func storedRange(_ range: KeyRange) -> KeyRange { mapping.storedRange(range) }

  /// Returns a change of the view, whose key was checked before, as a change of the base.
  func storedChange(_ change: BatchChange<Value>, _ allowance: inout BulkWork.Allowance) throws -> BatchChange<[UInt8]>
  {
    switch change {
    case .set(let key, let value):
      try set(value, storedAs: storedKey(key), &allowance)
    case .remove(let key): .remove(storedKey(key))
    case .removeAll(let range): .removeAll(storedRange(range))
    }
  }

  private func set(
    _ value: Value, storedAs key: StoreKey, _ allowance: inout BulkWork.Allowance
  ) throws -> BatchChange<[UInt8]> {
    .set(key, try allowance.encode { try encode(value, storedAs: key, during: .apply) })
  }

  private func viewKey(_ key: StoreKey) -> StoreKey {
    mapping.withoutPrefix(key)
  }

  /// Runs an operation of the base, and translates the keys in its errors into those of the view.
  func translatingErrors<Result>(_ operation: () async throws -> Result) async throws -> Result {
    do {
      return try await operation()
    } catch let error as StoreError {
      throw translated(error)
    }
  }

  /// Runs a synchronous operation of the base; see ``translatingErrors(_:)``.
  func translatingErrors<Result>(_ operation: () throws -> Result) throws -> Result {
    do {
      return try operation()
    } catch let error as StoreError {
      throw translated(error)
    }
  }

  func translated(_ error: StoreError) -> StoreError {
    error.translated(by: mapping, store: information.name)
  }

  // MARK: Values

  /// Returns the bytes of a value as the base has them, for a layer that writes to the base itself.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key in the view.
  ///   - stored: The stored bytes that an update replaces. Defaults to `nil`.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` as a write of the view.
  public func bytes(
    of value: Value, forKey key: StoreKey, replacing stored: [UInt8]? = nil, during operation: StoreOperation
  ) throws -> [UInt8] {
    try encode(value, storedAs: storedKey(key), replacing: stored, during: operation)
  }

  /// Returns the value of bytes that the base has, for a layer that reads from the base itself.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - key: The key in the view.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` as a read of the view.
  public func value(of bytes: [UInt8], forKey key: StoreKey, during operation: StoreOperation) throws -> Value {
    try decode(bytes, storedAs: storedKey(key), during: operation)
  }

  /// Returns the bytes of a value of the view.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key in the base.
  ///   - stored: The stored bytes that an update replaces. Defaults to `nil`.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with the key in the view.
  func encode(
    _ value: Value, storedAs key: StoreKey, replacing stored: [UInt8]? = nil, during operation: StoreOperation
  ) throws -> [UInt8] {
    try translatingErrors { try coder.bytes(of: value, forKey: key, replacing: stored?[...], during: operation) }
  }

  /// Returns the value of the view that some bytes encode.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - key: The key in the base.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with the key in the view.
  func decode(_ bytes: [UInt8], storedAs key: StoreKey, during operation: StoreOperation) throws -> Value {
    try translatingErrors { try coder.value(of: bytes, forKey: key, during: operation) }
  }
}

extension TypedView: StoreDecorator {
  /// Performs an operation of a capability on the base, and translates the keys in its errors into those of the view.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    try await translatingErrors(body)
  }
}

extension DataStore where Value == [UInt8] {
  /// Returns a view of this store of bytes as a store of values of one type; see ``TypedView``.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - prefix: The prefix of the view's keys in this store. Defaults to an empty prefix.
  ///   - codec: The codec of the values.
  public func typed<Typed: Sendable>(
    _ type: Typed.Type, prefix: StoreKey = "", codec: some Codec<Typed>
  ) -> TypedView<Self, Typed> {
    TypedView(self, prefix: prefix, codec: codec)
  }
}

extension DataStore {
  /// Names the missing step, if this is not a store of bytes.
  @available(
    *, unavailable, message: "a typed view needs a store of bytes: open this one with the codec .raw"
  )
  public func typed<Typed: Sendable>(
    _ type: Typed.Type, prefix: StoreKey = "", codec: some Codec<Typed>
  ) -> Self {
    self
  }
}
