/// A part of a store of bytes, seen as a store of values of one type.
///
/// Several types live in one store, each under a prefix of its own:
///
/// ```swift
/// let users = bytes.typed(User.self, prefix: "user/", codec: .json())
/// let sessions = bytes.typed(Session.self, prefix: "session/", codec: .json())
/// try await users.setValue(ada, forKey: "7")          // stored as "user/7"
/// ```
///
/// A view sees the keys that begin with its prefix and go on behind it, without it, and nothing else: `removeAll()`
/// removes those. No prefix should begin with another. What a store of bytes does not keep is which codec wrote a value: that is for the program
/// to know.
///
/// A view keeps nothing itself. It costs a copy of each value's bytes beside the codec. It closes the store below it, and all
/// other views with it.
public struct TypedView<Base: DataStore, Value: Sendable>: DataStore where Base.Value == [UInt8] {
  /// The store of bytes.
  public let base: Base

  /// What stands before each key in the store of bytes.
  public let prefix: StoreKey

  private let codec: any Codec<Value>

  /// What ``information`` says without the maintenance, made once: each operation checks its arguments by it.
  private let ownInformation: StoreInformation

  /// The reads whose values are still being decoded when the store below has done its part.
  private let reads = RunningOperations()

  /// Makes a view of a store.
  ///
  /// - Parameters:
  ///   - base: The store of bytes.
  ///   - prefix: What stands before each key; nothing unless given. Keys are shorter by its length.
  ///   - codec: Turns values into bytes and back.
  public init(_ base: Base, prefix: StoreKey = "", codec: some Codec<Value>) {
    self.base = base
    self.prefix = prefix
    self.codec = codec
    var information = base.information
    information.maintenance = nil
    if !prefix.isEmpty {
      information.maximumKeyLength = max(0, information.maximumKeyLength - prefix.count)
    }
    ownInformation = information
  }

  /// What the store below says of itself, its name included.
  ///
  /// The prefix is not in the name, since names are in logs and metrics, and a prefix may name a person.
  public var information: StoreInformation {
    var information = ownInformation
    information.maintenance = base.information.maintenance.map { TypedViewMaintenance(view: self, base: $0) }
    return information
  }

  // MARK: Reading

  /// Reads the value of one key; see ``DataStore/value(forKey:)``.
  public func value(forKey key: StoreKey) async throws -> Value? {
    let storedKey = try storedKey(key, for: .value)
    return try await reading(for: .value) {
      let bytes = try await seen { try await base.value(forKey: storedKey) }
      return try bytes.map { try decode($0, forKey: key, during: .value) }
    }
  }

  /// Reads the values of several keys as they are at one moment; see ``DataStore/values(forKeys:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try ownInformation.check(keys, for: .values)
    return try await reading(for: .values) {
      let values = try await seen { try await base.values(forKeys: keys.map(storedKey)) }
      return try await BulkWork.run(atMost: keys.count) { [self] allowance in
        try zip(keys, values).map { key, bytes in
          guard let bytes else { return nil }
          try allowance.take(bytes.count)
          return try decode(bytes, forKey: key, during: .values)
        }
      }
    }
  }

  /// Reads the first entries of a range; see ``DataStore/entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await reading(for: .entries) {
      let entries = try await seen { try await base.entries(in: storedRange(range), limit: limit, order: order) }
      return try await BulkWork.run(atMost: entries.count) { [self] allowance in
        try entries.map { entry in
          let key = ownKey(entry.key)
          try allowance.take(entry.value.count)
          return StoreEntry(key: key, value: try decode(entry.value, forKey: key, during: .entries))
        }
      }
    }
  }

  /// Reads the first keys of a range; see ``DataStore/keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await seen { try await base.keys(in: storedRange(range), limit: limit, order: order).map(ownKey) }
  }

  /// Counts the entries of a range; see ``DataStore/count(in:)``.
  public func count(in range: KeyRange) async throws -> Int {
    try await seen { try await base.count(in: storedRange(range)) }
  }

  // MARK: Writing

  /// Makes several changes, all or none of them; see ``DataStore/apply(_:)``.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try ownInformation.check(changes)
    let batch = try await BulkWork.run(atMost: changes.count) { [self] allowance in
      ChangeBatch(
        try changes.changes.map { change -> Change<[UInt8]> in
          switch change {
          case .set(let key, let value):
            .set(storedKey(key), try allowance.encode { try encode(value, forKey: key, during: .apply) })
          case .remove(let key): .remove(storedKey(key))
          case .removeAll(let range): .removeAll(storedRange(range))
          }
        })
    }
    try await seen { try await base.apply(batch) }
  }

  /// Reads, changes and writes back the values of some keys as one step; see ``DataStore/update(_:_:)``.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try ownInformation.check(updateOf: keys)
    do {
      return try await seen {
        try await base.update(keys.map(storedKey)) { slots in
          do {
            var values = try zip(keys, slots).map { key, bytes in
              try bytes.map { try decode($0, forKey: key, during: .update) }
            }
            let result = try body(&values)
            try ownInformation.check(slotCount: values.count, forUpdateOf: keys)
            slots = try zip(keys, values).map { key, value in
              try value.map { try encode($0, forKey: key, during: .update) }
            }
            return result
          } catch {
            throw PassedError(error: error)
          }
        }
      }
    } catch let passed as PassedError {
      throw passed.error
    }
  }

  /// Makes everything written before durable, in all of the store below.
  public func synchronize() async throws {
    try await seen { try await base.synchronize() }
  }

  /// Closes the store below, and all other views of it with it.
  public func close() async throws {
    await reads.close()
    try await seen { try await base.close() }
  }

  // MARK: Keys

  /// An error from inside an update, which the store below hands on as it is: it does not speak of that store's keys.
  private struct PassedError: Error {
    let error: any Error
  }

  func storedKey(_ key: StoreKey, for operation: StoreOperation) throws -> StoreKey {
    if key.isEmpty || key.count + prefix.count > StoreKey.maximumLength {
      try ownInformation.check(key, for: operation)
    }
    return storedKey(key)
  }

  private func storedKey(_ key: StoreKey) -> StoreKey {
    prefix.isEmpty ? key : StoreKey(bytes: prefix.bytes + key.bytes)
  }

  private func storedRange(_ range: KeyRange) -> KeyRange {
    // What is kept under the prefix itself has no key here, and is not the view's: the first key is longer by a byte.
    let lowerBound = range.lowerBound.isEmpty && !prefix.isEmpty ? StoreKey(bytes: [0]) : range.lowerBound
    return KeyRange(
      from: storedKey(lowerBound), upTo: range.upperBound.map(storedKey) ?? KeyRange.prefix(prefix).upperBound)
  }

  private func ownKey(_ key: StoreKey) -> StoreKey {
    prefix.isEmpty ? key : StoreKey(bytes: key.bytes.dropFirst(prefix.count))
  }

  /// Runs a read for which closing waits, until its values are decoded.
  private func reading<Result>(
    for operation: StoreOperation, _ body: () async throws -> Result
  ) async throws -> Result {
    guard reads.begin() else { throw ownInformation.closedError(for: operation) }
    defer { reads.end() }
    return try await body()
  }

  /// Runs an operation of the store below, and lets its errors name this view and the keys as they are seen here.
  func seen<Result>(_ operation: () async throws -> Result) async throws -> Result {
    do {
      return try await operation()
    } catch let error as StoreError {
      throw seen(error)
    }
  }

  /// Runs an operation of the store below that does not wait; see ``seen(_:)``.
  func seen<Result>(_ operation: () throws -> Result) throws -> Result {
    do {
      return try operation()
    } catch let error as StoreError {
      throw seen(error)
    }
  }

  private func seen(_ error: StoreError) -> StoreError {
    let key = error.key.map { $0.hasPrefix(prefix) ? ownKey($0) : $0 }
    return StoreError(
      error.code, during: error.operation, store: ownInformation.name, key: key, message: error.message,
      underlying: error.underlying.map(seen), isRetryable: error.isRetryable, outcome: error.outcome)
  }

  private func seen(_ underlying: any Error) -> any Error {
    guard !prefix.isEmpty, let damage = underlying as? any UnreadableKeysError else { return underlying }
    return SeenUnreadableKeysError(keys: seenRange(damage.keys), damage: damage)
  }

  /// The part of a range of the store below that this view sees, without the prefix; empty if it sees nothing of it.
  private func seenRange(_ range: KeyRange) -> KeyRange {
    let seen = KeyRange.prefix(prefix)
    let isBehind = seen.upperBound.map { range.lowerBound >= $0 } ?? false
    let isBefore = range.upperBound.map { $0 <= prefix } ?? false
    guard !isBehind, !isBefore else { return KeyRange(from: "", upTo: "") }
    return KeyRange(
      from: range.lowerBound.hasPrefix(prefix) ? ownKey(range.lowerBound) : "",
      upTo: range.upperBound.flatMap { $0.hasPrefix(prefix) ? ownKey($0) : nil })
  }

  // MARK: Values

  private func encode(_ value: Value, forKey key: StoreKey, during operation: StoreOperation) throws -> [UInt8] {
    var bytes: [UInt8] = []
    do {
      try codec.encode(value, into: &bytes)
    } catch {
      throw StoreError(
        .encodingFailed, during: operation, store: ownInformation.name, key: key,
        message: "the value could not be encoded", underlying: error)
    }
    return bytes
  }

  private func decode(_ bytes: [UInt8], forKey key: StoreKey, during operation: StoreOperation) throws -> Value {
    do {
      return try bytes.withUnsafeBytes { try codec.decode($0.bytes) }
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: ownInformation.name, key: key, message: "the value could not be decoded",
        underlying: error)
    }
  }
}

/// Damage of the store below a view, with the keys as the view sees them.
private struct SeenUnreadableKeysError: UnreadableKeysError, CustomStringConvertible {
  let keys: KeyRange
  let damage: any UnreadableKeysError
  var description: String { "\(damage)" }
}

extension TypedView: CustomStringConvertible {
  /// The store below, in brackets.
  public var description: String { "TypedView[\(base)]" }
}
