import Larder
import LarderExpiry

/// An open store, as values that have not expired and as values with their deadlines.
struct OpenedStore {
  /// The decorator through which entries expire.
  typealias Expiry = ExpiringStore<AnyDataStore<Expiring<JSONText>>, JSONText>

  /// All entries with their deadlines, including expired ones.
  let stored: AnyDataStore<Expiring<JSONText>>

  /// The same store as one whose values expire; `nil` if they do not.
  let expiry: Expiry?

  /// The entries that have not expired.
  let present: AnyDataStore<JSONText>

  /// The name of the codec of the values; `nil` if the store keeps no bytes.
  var codecName: String? { codec?.name }

  private let codec: (any Codec<Expiring<JSONText>>)?

  /// Creates the views of an open store.
  ///
  /// - Parameters:
  ///   - stored: The store.
  ///   - codec: The codec of its values; `nil` if the store keeps no bytes.
  ///   - isExpiring: Whether its values expire.
  ///   - timeToLive: The time to live of the entries that are written.
  init(
    _ stored: AnyDataStore<Expiring<JSONText>>, codec: (any Codec<Expiring<JSONText>>)?, isExpiring: Bool,
    timeToLive: TimeToLive
  ) {
    self.stored = stored
    self.codec = codec
    if isExpiring {
      let expiry = stored.expiring(timeToLive)
      self.expiry = expiry
      present = AnyDataStore(expiry)
    } else {
      expiry = nil
      present = AnyDataStore(DeadlinelessStore(stored))
    }
  }

  /// Checks whether the store can hold a value, before a whole batch fails because of it.
  ///
  /// - Parameter value: The value.
  /// - Throws: ``BadLine`` if the store cannot hold the value.
  func check(_ value: JSONText) throws(BadLine) {
    var bytes: [UInt8] = []
    do {
      try codec?.encode(Expiring(value), into: &bytes)
    } catch let error as JSONSyntaxError {
      // The column in the error is one of the value, not of the line.
      throw BadLine("its value cannot be stored: \(error.message)")
    } catch {
      throw BadLine("its value cannot be stored: \(error)")
    }
    if let maximum = stored.information.maximumValueSize, bytes.count > maximum {
      throw BadLine("its value has \(bytes.count) bytes; the maximum of this store is \(maximum)")
    }
  }

  /// Returns the store as one whose values expire.
  ///
  /// - Throws: ``CommandFailure`` if they do not.
  func expiring() throws -> Expiry {
    if let expiry { return expiry }
    throw CommandFailure.plainValues(
      in: stored.information.name, advice: "It has no deadlines to extend and nothing to purge.")
  }

  /// Extends the deadline of an entry, or leaves a later one as it is.
  ///
  /// - Parameters:
  ///   - key: The key of the entry, which may be missing.
  ///   - timeToLive: The time to live from now on; `nil` for the window of an entry with a sliding deadline.
  /// - Throws: ``CommandFailure`` if the values do not expire, or if there is neither a time nor a window; the store's
  ///   errors.
  func extendDeadline(of key: StoreKey, by timeToLive: Duration?) async throws {
    let expiry = try expiring()
    guard case .limited(let remaining) = try await expiry.remainingTime(forKey: key) else { return }
    let window = try await stored.value(forKey: key)?.deadline?.window
    guard let duration = timeToLive ?? window else {
      throw CommandFailure(
        .usage, "the deadline of this entry does not slide, so --slide needs a time",
        advice: "Give one, as in --slide --ttl 30m.")
    }
    // A deadline that slides still slides.
    let timeToLive: TimeToLive = window == nil ? .limited(duration) : .sliding(duration)
    if duration > remaining { try await expiry.touch(key, timeToLive: timeToLive) }
  }
}

/// A view of a store whose values do not expire, without the deadlines that the tool opens every store with.
///
/// An `ExpiringStore` would show the same entries, but must decode values to find out which keys exist.
struct DeadlinelessStore<Base: DataStore, Value: Sendable>: DataStore where Base.Value == Expiring<Value> {
  let base: Base

  init(_ base: Base) {
    self.base = base
  }

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Value? {
    try await base.value(forKey: key)?.value
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await base.values(forKeys: keys).map { $0?.value }
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order).map { StoreEntry(key: $0.key, value: $0.value.value) }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Value>) async throws {
    try await base.apply(
      ChangeBatch(
        changes.changes.map { change in
          switch change {
          case .set(let key, let value): .set(key, Expiring(value))
          case .remove(let key): .remove(key)
          case .removeAll(let range): .removeAll(range)
          }
        }))
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await base.update(keys) { slots in
      var values = slots.map { $0?.value }
      defer { slots = values.map { $0.map { Expiring($0) } } }
      return try body(&values)
    }
  }

  func synchronize() async throws {
    try await base.synchronize()
  }

  func close() async throws {
    try await base.close()
  }
}

extension DeadlinelessStore: MaintainableStore where Base: MaintainableStore {
  func storeStatistics() async throws -> StoreStatistics { try await base.storeStatistics() }
  func verify() async throws -> VerificationReport { try await base.verify() }
  func compact() async throws { try await base.compact() }
  func backup(to path: String, compacting: Bool) async throws {
    try await base.backup(to: path, compacting: compacting)
  }
}
