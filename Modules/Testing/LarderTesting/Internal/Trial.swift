import Larder

/// The store that a suite checks, and the settings of the suite.
struct SuiteSettings<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  let name: String
  let lacking: StoreCapabilities
  let seed: UInt64
  let rounds: Int
  /// The length in bytes of the longest key that the store accepts.
  let maximumKeyLength: Int
  let timeLimit: Duration
  let child: ConformanceChild.Start?
  let open: @Sendable (ConformanceLocation) async throws -> Store
}

/// A run of one case, with its locations and the stores that it has opened.
final class Trial<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  /// The location of the case's store.
  let location: ConformanceLocation
  private let settings: SuiteSettings<Store>
  private let purpose: String
  private let stores = Locked<[Store]>([])
  private let locations: Locked<[ConformanceLocation]>

  init(_ settings: SuiteSettings<Store>, purpose: String) throws {
    let location = try ConformanceLocation()
    self.location = location
    self.settings = settings
    self.purpose = purpose
    locations = Locked([location])
  }

  /// Runs a case, closes its stores, and removes its locations.
  func run(_ body: (Trial) async throws -> Void) async throws {
    // An error of the case takes precedence over an error of the cleanup.
    var failure: (any Error)?
    func attempt(_ step: () async throws -> Void) async {
      do {
        try await step()
      } catch {
        failure = failure ?? error
      }
    }
    await attempt { try await body(self) }
    for store in stores.withLock({ $0 }) { await attempt { try await store.close() } }
    stores.withLock { $0 = [] }
    for location in locations.withLock({ $0 }) { await attempt { try location.remove() } }
    if let failure { throw failure }
  }

  func lacks(_ capability: StoreCapabilities) -> Bool { settings.lacking.contains(capability) }

  /// A Boolean value that indicates whether the store keeps its entries when it is closed.
  var isPersistent: Bool { !lacks(.persistence) }

  /// Opens a store, and closes it when the case ends.
  ///
  /// - Parameters:
  ///   - location: The location. Defaults to that of the case.
  ///   - access: The access. Defaults to ``StoreAccess/readWrite``.
  func open(at location: ConformanceLocation? = nil, for access: StoreAccess = .readWrite) async throws -> Store {
    let location = location ?? self.location
    let store = try await location.opening(for: access) { try await settings.open(location) }
    stores.withLock { $0.append(store) }
    return store
  }

  /// Opens a store with another codec, which it has until another one is chosen.
  ///
  /// - Parameter codec: The codec.
  func open(codec: any Codec<SampleValue?>) async throws -> Store {
    location.codec = codec
    return try await open()
  }

  /// Opens a store, as another process might.
  ///
  /// - Parameters:
  ///   - location: The location.
  ///   - access: The access. Defaults to ``StoreAccess/readWrite``.
  ///   - codes: The codes of errors that refuse the store. Defaults to `nil`, meaning any.
  /// - Returns: The store, or `nil` if opening it is refused.
  func openUnlessRefused(
    at location: ConformanceLocation, for access: StoreAccess = .readWrite, with codes: [StoreError.Code]? = nil
  ) async throws -> Store? {
    do {
      return try await open(at: location, for: access)
    } catch let error as StoreError where codes?.contains(error.code) != false {
      return nil
    }
  }

  /// Opens the store and adds entries in one batch, in an order that depends on the seed.
  ///
  /// Depending on the seed and the case, a store with entries is then closed and reopened, so cases check both states.
  func open(with entries: Entries) async throws -> Store {
    let store = try await open()
    guard !entries.isEmpty else { return store }
    var generator = SeededGenerator(seed: settings.seed, purpose: "\(purpose), opening")
    let ordered = entries.sorted { $0.key < $1.key }.shuffled(using: &generator)
    try await store.apply(ChangeBatch(ordered.map { .set($0.key, $0.value) }))
    return Bool.random(using: &generator) ? try await settled(store) : store
  }

  /// Opens the store at the location, after an earlier store may have been dropped without closing it.
  ///
  /// The caller gets the only reference to the store.
  func openUntracked() async throws -> Store {
    try await openAgain { try await settings.open(location) }
  }

  /// Opens a store at another, fresh location, and adds an entry for each key.
  func openElsewhere(withKeys keys: [StoreKey] = []) async throws -> Store {
    let store = try await open(at: anotherLocation())
    try await store.apply(ChangeBatch(keys.map { .set($0, SampleValue(key: $0)) }))
    return store
  }

  /// Closes and reopens a store.
  func reopen(_ store: Store) async throws -> Store {
    try await store.close()
    return try await open()
  }

  /// Closes and reopens a store, or returns it unchanged if it lacks persistence.
  func settled(_ store: Store) async throws -> Store {
    isPersistent ? try await reopen(store) : store
  }

  /// Throws a ``Mismatch`` unless a store that was closed contains the given entries when it is reopened.
  ///
  /// A store that lacks persistence is not checked.
  func expectReopened(holds entries: Entries) async throws {
    if isPersistent { try await expect(open(), holds: entries, "after reopening") }
  }

  /// Creates a fresh location that is removed when the case ends.
  func anotherLocation() throws -> ConformanceLocation {
    let another = try ConformanceLocation()
    locations.withLock { $0.append(another) }
    return another
  }

  /// Copies the files at the location to another one, while a store may have them open.
  ///
  /// - Returns: The new location, or `nil` if there are no files.
  func copyOfFiles() throws -> ConformanceLocation? {
    let copy = try anotherLocation()
    return try copy.takeFiles(of: location) > 0 ? copy : nil
  }

  /// Starts another process that opens the store at the location.
  ///
  /// - Parameter work: The work of the process.
  /// - Throws: Any error from the file system.
  func startChild(_ work: ChildOrder.Work) throws -> StartedChild {
    guard let child = settings.child else {
      throw Mismatch(subject: "the child of the suite", expected: "a closure", got: "none")
    }
    let exchange = try anotherLocation()
    let order = ChildOrder(folder: location.folder, exchange: exchange.folder, work: work)
    return StartedChild(child, order: try order.text(), exchange: exchange)
  }

  /// Creates a random number generator for this case.
  func makeGenerator() -> SeededGenerator {
    SeededGenerator(seed: settings.seed, purpose: purpose)
  }
}

/// Reopens a store that was dropped without closing it.
///
/// A task or executor of the store can hold it slightly longer than the caller's last reference. While this makes
/// opening fail with `locked`, opening is retried for up to 5 seconds.
///
/// - Parameter open: A closure that opens the store.
/// - Throws: Any error from `open`.
func openAgain<Store>(_ open: () async throws -> Store) async throws -> Store {
  let end = ContinuousClock.now + .seconds(5)
  while true {
    do {
      return try await open()
    } catch let error as StoreError where error.code == .locked && ContinuousClock.now < end {
      await Task.yield()
    }
  }
}
