#if Inspector
import HTTPTypes
public import Larder

/// A store or a queue that an inspector shows, with the name under which it shows it.
///
/// ```swift
/// let users = try await SQLiteStore<User>(path: "shop.sqlite", name: "users")
/// let inspected = InspectedStore("users", users, codec: .cbor())
/// ```
///
/// The inspector shows the bytes that the codec makes of a value, and stores only values that the codec can decode. The capabilities
/// of the store decide what else it shows: statistics, verification, times to live, changes as they happen, and the pages of
/// a queue. A store of an HTTP cache has pages of its responses, and ``reporting(operations:hits:)`` adds charts.
public struct InspectedStore: Sendable {
  /// The name in the list of stores.
  public let name: String

  let contents: any InspectedContents
  /// The HTTP cache in the store, or `nil` if there isn't one.
  var httpCache: InspectedHTTPCache?
  /// The sources of the page of measurements, or `nil` if there is no such page.
  var measurements: Measurements?
  /// The copy of the readable entries to another store, or `nil` if there is no such store.
  var salvage: InspectedSalvage?

  /// Creates an inspected store of typed values.
  ///
  /// - Parameters:
  ///   - name: The name in the list of stores.
  ///   - store: The store, with any layers. It stays open as long as the inspector exists.
  ///   - codec: The codec that shows the values. It need not be the one of the store.
  public init<Value>(_ name: String, _ store: some DataStore<Value>, codec: some Codec<Value>) {
    self.name = name
    contents = TypedContents(store: AnyDataStore(store), codec: codec)
  }

  /// Creates an inspected store of bytes.
  ///
  /// - Parameters:
  ///   - name: The name in the list of stores.
  ///   - store: The store.
  public init(_ name: String, _ store: some DataStore<[UInt8]>) {
    self.init(name, store, codec: .raw)
  }
}

/// The contents of a store, with values as the bytes of a codec.
protocol InspectedContents: Sendable {
  var information: StoreInformation { get }
  var format: CodecFormat { get }
  var expires: Bool { get }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey]
  /// Returns the value of a key, without moving a sliding deadline.
  func value(forKey key: StoreKey) async throws -> [UInt8]?
  func remainingTime(forKey key: StoreKey) async throws -> TimeToLive?
  /// Checks that bytes are a value.
  func check(_ bytes: [UInt8], forKey key: StoreKey) throws
  /// Replaces the value of a key, if it is still the one that was shown.
  func replaceValue(forKey key: StoreKey, shown: ValueDigest?, with bytes: [UInt8]?) async throws
  func statistics() async throws -> StoreStatistics
  func verify() async throws -> VerificationReport
  /// Calls a closure after changes, or returns `nil` if the store does not report them.
  func observe(_ observer: @escaping @Sendable () -> Void) -> StoreObservation?

  /// The queue, if the store is one.
  var queue: (any InspectedQueue)? { get }
}

/// A digest of the bytes of a value, by which a change notices that the value is not the one that was shown.
struct ValueDigest: Sendable, Hashable {
  let text: String

  init(_ bytes: [UInt8]) {
    text = Hexadecimal.text(of: bytes.withUnsafeBytes { KeyDigest.digest(of: $0) })
  }

  init(text: String) {
    self.text = text
  }
}

/// The contents of a store of typed values.
struct TypedContents<Value: Sendable>: InspectedContents {
  let store: AnyDataStore<Value>
  let codec: any Codec<Value>

  var information: StoreInformation { store.information }
  var format: CodecFormat { codec.format }
  var expires: Bool { store.expiry != nil }
  var queue: (any InspectedQueue)? {
    store.queue.map {
      TypedQueue(queue: $0, pausable: store.pausableQueue, lists: store.inspectableQueue, contents: self)
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await store.keys(in: range, limit: limit, order: order)
  }

  func value(forKey key: StoreKey) async throws -> [UInt8]? {
    let value =
      if let expiry = store.expiry { try await expiry.peekValue(forKey: key) } else {
        try await store.value(forKey: key)
      }
    return try value.map { try encoded($0, forKey: key) }
  }

  func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    try await store.expiry?.remainingTime(forKey: key)
  }

  func check(_ bytes: [UInt8], forKey key: StoreKey) throws {
    _ = try decoded(bytes, forKey: key)
  }

  func replaceValue(forKey key: StoreKey, shown: ValueDigest?, with bytes: [UInt8]?) async throws {
    let new = try bytes.map { try decoded($0, forKey: key) }
    let replace: @Sendable (inout Value?) -> UpdateDecision<Result<Void, any Error>> = { value in
      UpdateDecision(catching: {
        let current = try value.map { ValueDigest(try encoded($0, forKey: key)) }
        guard current == shown else { throw PageFailure.changedMeanwhile }
        value = new
        return .commit(())
      })
    }
    guard let expiry = store.expiry else {
      return try await store.update(deciding: [key]) { slots in replace(&slots[0]) }.get()
    }
    // An edited entry keeps the rest of its time.
    let rest = try await expiry.remainingTime(forKey: key)
    try await expiry.update(deciding: key, timeToLive: new == nil ? nil : rest, replace).get()
  }

  func statistics() async throws -> StoreStatistics {
    try await store.storeStatistics()
  }

  func verify() async throws -> VerificationReport {
    try await store.verify()
  }

  func observe(_ observer: @escaping @Sendable () -> Void) -> StoreObservation? {
    store.observation?.observe(.all) { _ in observer() }
  }

  func encoded(_ value: Value, forKey key: StoreKey) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes, context: ValueContext(key: key))
    return bytes
  }

  func decoded(_ bytes: [UInt8], forKey key: StoreKey) throws -> Value {
    do {
      return try codec.decode(bytes.span.bytes, context: ValueContext(key: key))
    } catch {
      throw PageFailure(.badRequest, "the value does not fit this store: \(PageFailure.text(of: error))")
    }
  }
}
#endif
