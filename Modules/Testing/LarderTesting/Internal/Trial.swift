import Larder
import Synchronization

/// One run of one case: its location, and the stores that it opened there.
final class Trial<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  private struct Opened: Sendable {
    var stores: [Store] = []
    var elsewhere: [ConformanceLocation] = []
  }

  let location: ConformanceLocation
  let lacking: StoreAbilities
  private let seed: UInt64
  private let purpose: String
  private let child: ConformanceChild.Start?
  private let opener: CaseList<Store>.Opener
  private let opened = Mutex(Opened())

  init(
    location: ConformanceLocation, lacking: StoreAbilities, seed: UInt64, purpose: String,
    child: ConformanceChild.Start?, opener: @escaping CaseList<Store>.Opener
  ) {
    self.location = location
    self.lacking = lacking
    self.seed = seed
    self.purpose = purpose
    self.child = child
    self.opener = opener
  }

  /// Runs a case, closes what it left open, and removes the location.
  func run(_ body: (Trial) async throws -> Void) async throws {
    let result: Result<Void, any Error>
    do {
      try await body(self)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    // What the case found comes first; what goes wrong in tidying up after it counts only where the case passed.
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

  /// Opens the store at the location; it is closed when the case ends.
  func open() async throws -> Store {
    let store = try await opener(location)
    opened.withLock { $0.stores.append(store) }
    return store
  }

  /// Opens a store at another, fresh location, and puts entries into it, whose values hold their keys.
  func openElsewhere(withKeys keys: [StoreKey] = []) async throws -> Store {
    let elsewhere = try ConformanceLocation()
    opened.withLock { $0.elsewhere.append(elsewhere) }
    let store = try await opener(elsewhere)
    opened.withLock { $0.stores.append(store) }
    try await store.apply(ChangeBatch(keys.map { .set($0, SampleValue(key: $0)) }))
    return store
  }

  /// Opens the store at the location for reading only; it is closed when the case ends.
  func openForReading() async throws -> Store {
    try await location.opening(for: .readOnly) { try await open() }
  }

  /// Opens a store elsewhere for reading only, after one for writing was closed there; `nil` if that is refused.
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

  /// Creates a fresh location, which is removed when the case ends.
  func anotherLocation() throws -> ConformanceLocation {
    let another = try ConformanceLocation()
    opened.withLock { $0.elsewhere.append(another) }
    return another
  }

  /// Starts another process that opens the store at the location.
  ///
  /// - Parameter work: What it does.
  /// - Throws: What the file system throws.
  func startChild(_ work: ChildOrder.Work) throws -> StartedChild {
    guard let child else {
      throw Mismatch(subject: "the suite", expected: "a child", got: "none", place: "\(#fileID):\(#line)")
    }
    let exchange = try anotherLocation()
    let order = ChildOrder(folder: location.folder, exchange: exchange.folder, work: work)
    return StartedChild(child, order: try order.text(), exchange: exchange)
  }

  /// Moves the files at the location to another one, as `mv` does while a store may have them open.
  ///
  /// - Returns: Where they are now, or `nil` if nothing is in files.
  func moveFilesAside() throws -> ConformanceLocation? {
    guard try !location.fileNames().isEmpty else { return nil }
    let aside = try anotherLocation()
    try location.moveFiles(to: aside)
    return aside
  }

  /// Opens a store over a copy of the files at the location, as they are while the first store may still be open.
  ///
  /// - Parameter access: The access to open it with; defaults to ``StoreAccess/readWrite``.
  /// - Returns: The store, or `nil` where nothing is in files.
  func openCopy(for access: StoreAccess = .readWrite) async throws -> Store? {
    let copy = try ConformanceLocation()
    opened.withLock { $0.elsewhere.append(copy) }
    guard try copy.takeFiles(of: location) > 0 else { return nil }
    let store = try await copy.opening(for: access) { try await opener(copy) }
    opened.withLock { $0.stores.append(store) }
    return store
  }

  /// Makes a location for each file of the store, with nothing in it but that file under the same name.
  func locationsWithOneLink(_ kind: ConformanceLocation.LinkKind) throws -> [ConformanceLocation] {
    let locations = try location.locationsWithOneLink(kind)
    opened.withLock { $0.elsewhere += locations }
    return locations
  }

  /// Opens a store at another location; it is closed when the case ends.
  func open(at location: ConformanceLocation) async throws -> Store {
    let store = try await opener(location)
    opened.withLock { $0.stores.append(store) }
    return store
  }

  /// Opens the store at the location, where the one before may have been dropped, and leaves the only reference to it to
  /// the caller.
  func openUntracked() async throws -> Store {
    try await openAgain { try await opener(location) }
  }

  /// Opens the store and puts entries into it; by the seed and the case it is then closed and opened again, so that what
  /// the case does is checked in both states.
  func open(with entries: [(StoreKey, SampleValue?)]) async throws -> Store {
    let store = try await open()
    try await store.apply(ChangeBatch(entries.map { .set($0, $1) }))
    var generator = SeededGenerator(seed: seed, purpose: "\(purpose), reopening")
    return Bool.random(using: &generator) ? try await settled(store) : store
  }

  /// Opens the store and puts entries into it, whose values hold their keys.
  func open(withKeys keys: [StoreKey]) async throws -> Store {
    try await open(with: keys.map { ($0, SampleValue(key: $0)) })
  }

  /// Closes a store and opens it again.
  func reopen(_ store: Store) async throws -> Store {
    try await store.close()
    return try await open()
  }

  /// The store after closing and opening it again, or the same store where it keeps nothing beyond closing.
  func settled(_ store: Store) async throws -> Store {
    lacking.contains(.persistence) ? store : try await reopen(store)
  }

  /// Random numbers for this case alone.
  func makeGenerator() -> SeededGenerator {
    SeededGenerator(seed: seed, purpose: purpose)
  }
}

extension SampleValue {
  /// A value that holds a key, so that it shows when it stands under another.
  init(key: StoreKey) {
    self.init("value of \(key)")
  }
}
