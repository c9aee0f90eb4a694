import Larder
import Synchronization

/// A run of one case, with its location and the stores that it has opened.
final class Trial<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  private struct Opened: Sendable {
    var stores: [Store] = []
    var elsewhere: [ConformanceLocation] = []
  }

  let location: ConformanceLocation
  let lacking: StoreCapabilities
  private let seed: UInt64
  private let purpose: String
  private let child: ConformanceChild.Start?
  private let opener: CaseList<Store>.Opener
  private let opened = Mutex(Opened())

  init(
    location: ConformanceLocation, lacking: StoreCapabilities, seed: UInt64, purpose: String,
    child: ConformanceChild.Start?, opener: @escaping CaseList<Store>.Opener
  ) {
    self.location = location
    self.lacking = lacking
    self.seed = seed
    self.purpose = purpose
    self.child = child
    self.opener = opener
  }

  /// Runs a case, closes its stores, and removes its locations.
  func run(_ body: (Trial) async throws -> Void) async throws {
    let result: Result<Void, any Error>
    do {
      try await body(self)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    // An error of the case takes precedence over an error of the cleanup.
    let tidying: Result<Void, any Error>
    do {
      try await tidyUp()
      tidying = .success(())
    } catch {
      tidying = .failure(error)
    }
    try result.get()
    try tidying.get()
  }

  private func tidyUp() async throws {
    let (stores, elsewhere) = opened.withLock { opened in
      defer { opened = Opened() }
      return (opened.stores, opened.elsewhere)
    }
    var firstError: (any Error)?
    for store in stores {
      do {
        try await store.close()
      } catch {
        firstError = firstError ?? error
      }
    }
    for location in elsewhere + [location] {
      try location.remove()
    }
    if let firstError { throw firstError }
  }

  /// Opens the store at the location, and closes it when the case ends.
  func open() async throws -> Store {
    let store = try await opener(location)
    opened.withLock { $0.stores.append(store) }
    return store
  }

  /// Opens a store at another, fresh location, and adds an entry for each key.
  ///
  /// Each value contains its key.
  func openElsewhere(withKeys keys: [StoreKey] = []) async throws -> Store {
    let elsewhere = try ConformanceLocation()
    opened.withLock { $0.elsewhere.append(elsewhere) }
    let store = try await opener(elsewhere)
    opened.withLock { $0.stores.append(store) }
    try await store.apply(ChangeBatch(keys.map { .set($0, SampleValue(key: $0)) }))
    return store
  }

  /// Opens the store at the location for reading only, and closes it when the case ends.
  func openForReading() async throws -> Store {
    try await location.opening(for: .readOnly) { try await open() }
  }

  /// Creates a store at another location, closes it, and opens it for reading only.
  ///
  /// - Returns: The store, or `nil` if opening it for reading is refused.
  func openElsewhereForReading() async throws -> Store? {
    let elsewhere = try anotherLocation()
    try await opener(elsewhere).close()
    do {
      let store = try await elsewhere.opening(for: .readOnly) { try await opener(elsewhere) }
      opened.withLock { $0.stores.append(store) }
      return store
    } catch is StoreError {
      return nil
    }
  }

  /// Creates a fresh location that is removed when the case ends.
  func anotherLocation() throws -> ConformanceLocation {
    let another = try ConformanceLocation()
    opened.withLock { $0.elsewhere.append(another) }
    return another
  }

  /// Starts another process that opens the store at the location.
  ///
  /// - Parameter work: The work of the process.
  /// - Throws: Any error from the file system.
  func startChild(_ work: ChildOrder.Work) throws -> StartedChild {
    guard let child else {
      throw Mismatch(
        subject: "the child of the suite", expected: "a closure", got: "none", place: "\(#fileID):\(#line)")
    }
    let exchange = try anotherLocation()
    let order = ChildOrder(folder: location.folder, exchange: exchange.folder, work: work)
    return StartedChild(child, order: try order.text(), exchange: exchange)
  }

  /// Moves the files at the location to another one, as `mv` does, while a store may have them open.
  ///
  /// - Returns: The new location, or `nil` if there are no files.
  func moveFilesAside() throws -> ConformanceLocation? {
    guard try !location.fileNames().isEmpty else { return nil }
    let aside = try anotherLocation()
    try location.moveFiles(to: aside)
    return aside
  }

  /// Opens a store over a copy of the files at the location, while the first store may still be open.
  ///
  /// - Parameter access: The access to open the copy with; defaults to ``StoreAccess/readWrite``.
  /// - Returns: The store, or `nil` if there are no files.
  func openCopy(for access: StoreAccess = .readWrite) async throws -> Store? {
    let copy = try ConformanceLocation()
    opened.withLock { $0.elsewhere.append(copy) }
    guard try copy.takeFiles(of: location) > 0 else { return nil }
    let store = try await copy.opening(for: access) { try await opener(copy) }
    opened.withLock { $0.stores.append(store) }
    return store
  }

  /// Creates a location for each file of the store, which contains only a link to that file under the same name.
  func locationsWithOneLink(_ kind: ConformanceLocation.LinkKind) throws -> [ConformanceLocation] {
    let locations = try location.locationsWithOneLink(kind)
    opened.withLock { $0.elsewhere += locations }
    return locations
  }

  /// Opens a store at another location, and closes it when the case ends.
  func open(at location: ConformanceLocation) async throws -> Store {
    let store = try await opener(location)
    opened.withLock { $0.stores.append(store) }
    return store
  }

  /// Opens the store at the location, after an earlier store may have been dropped without closing it.
  ///
  /// The caller gets the only reference to the store.
  func openUntracked() async throws -> Store {
    try await openAgain { try await opener(location) }
  }

  /// Opens the store and adds entries.
  ///
  /// Depending on the seed and the case, the store is then closed and reopened, so that cases check both states.
  func open(with entries: [(StoreKey, SampleValue?)]) async throws -> Store {
    let store = try await open()
    try await store.apply(ChangeBatch(entries.map { .set($0, $1) }))
    var generator = SeededGenerator(seed: seed, purpose: "\(purpose), reopening")
    return Bool.random(using: &generator) ? try await settled(store) : store
  }

  /// Opens the store and adds an entry for each key.
  ///
  /// Each value contains its key.
  func open(withKeys keys: [StoreKey]) async throws -> Store {
    try await open(with: keys.map { ($0, SampleValue(key: $0)) })
  }

  /// Closes and reopens a store.
  func reopen(_ store: Store) async throws -> Store {
    try await store.close()
    return try await open()
  }

  /// Closes and reopens a store, or returns it unchanged if it lacks persistence.
  func settled(_ store: Store) async throws -> Store {
    lacking.contains(.persistence) ? store : try await reopen(store)
  }

  /// Creates a random number generator for this case.
  func makeGenerator() -> SeededGenerator {
    SeededGenerator(seed: seed, purpose: purpose)
  }
}

extension SampleValue {
  /// Creates a value that contains a key, so that a value stored under the wrong key is noticed.
  init(key: StoreKey) {
    self.init("value of \(key)")
  }
}

/// Reopens a store that was dropped without closing it.
///
/// A task or executor of the store can hold it slightly longer than the caller's last reference. While this makes
/// opening fail with `locked`, opening is retried.
///
/// - Parameters:
///   - patience: The maximum duration of the retries; defaults to 5 seconds.
///   - open: A closure that opens the store.
/// - Throws: Any error from `open`.
func openAgain<Store>(
  patience: Duration = .seconds(5), _ open: () async throws -> Store
) async throws -> Store {
  let end = ContinuousClock.now + patience
  while true {
    do {
      return try await open()
    } catch let error as StoreError where error.code == .locked && ContinuousClock.now < end {
      await Task.yield()
    }
  }
}
