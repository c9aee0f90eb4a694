#if Postgres
import Larder

/// The changes of the stores of a database: those of this object, which are reported before its calls return, and those
/// of other objects and hosts, which one reader for all stores finds in the change feed.
///
/// The reader looks twice a second while a store is observed, and after each notification. So the feed, which is written
/// by the transactions, is complete by itself, and a lost notification delays a report by half a second at most.
final class ChangeFeed: Sendable {
  private struct State {
    var feed = FeedState()
    var stores = ObservedStores<String>()
    /// The channel of notifications, or `nil` if no open store records its changes.
    var channel: String?
    /// The time until which every commit is reported.
    var completeUntil: ContinuousClock.Instant?
    var reading: [Task<Void, Never>] = []
    var listening: StoreObservation?
    var isTrimming = false
    var isClosed = false
  }

  /// The longest time between two looks, of which a cache needs one within a second.
  private static let interval = Duration.milliseconds(500)

  /// The time limit of a look, after which the connection is given up.
  private static let timeout = Duration.seconds(5)

  /// One commit of so many also looks whether old changes are to be removed, because the feed may have no reader.
  private static let commitsPerTrimming = 4096

  private let pool: SessionPool
  private let listener: NotificationListener
  private let table: FeedTable
  private let state = Locked(State())
  private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  /// Creates a feed that is not read yet.
  init(_ pool: SessionPool, _ listener: NotificationListener) {
    self.pool = pool
    self.listener = listener
    table = FeedTable(schema: pool.configuration.quotedSchema)
  }

  deinit {
    close()
  }

  // MARK: Observing

  /// Begins to follow the feed, before the first store that records its changes is used.
  ///
  /// - Parameter handle: The handle of the store.
  /// - Throws: ``StoreError``.
  func begin(for handle: PostgresHandle) async throws {
    guard state.withLock({ $0.channel == nil }) else { return }
    let channel = try await handle.read(table.channel, for: .open).text(0, 0)
    func readPage() async throws -> FeedPage {
      guard let page = FeedPage(try await handle.read(table.page(after: nil), for: .open)) else {
        throw StoreError(.corrupted, during: .open, store: handle.name, message: "the change feed cannot be read")
      }
      return page
    }
    var page = try await readPage()
    if !page.isIdentified, handle.information.access == .readWrite {
      try await handle.write([table.identification], for: .open)
      page = try await readPage()
    }
    state.withLock { state in
      // Another store may have begun at the same time.
      guard state.channel == nil else { return }
      state.channel = channel ?? FeedTable.names.changes
      _ = state.feed.take(page)
    }
  }

  /// Adds an observed store, and begins to read the feed if the store records its changes there.
  ///
  /// - Parameters:
  ///   - store: The name of the store.
  ///   - handle: The handle of the store.
  ///   - root: The handle of the database.
  ///   - observers: The observers of the store.
  ///   - isRecorded: A Boolean value that indicates whether all writers record the changes of the store.
  func add(
    _ store: String, _ handle: PostgresHandle, root: PostgresHandle, _ observers: StoreObservers, isRecorded: Bool
  ) {
    let channel = state.withLock { state -> String? in
      state.stores.add(ObjectIdentifier(handle), root: ObjectIdentifier(root), store, observers)
      guard isRecorded, state.reading.isEmpty, !state.isClosed, let channel = state.channel else { return nil }
      state.reading = [
        Task { [weak self, wakes] in for await _ in wakes { await self?.look() } },
        Task { [wake] in
          // Ends when the feed is closed.
          while (try? await Task.sleep(for: ChangeFeed.interval)) != nil { wake.yield() }
        },
      ]
      return channel
    }
    guard let channel else {
      wake.yield()
      return
    }
    let listening = listener.observe(channel) { [wake] in wake.yield() }
    state.withLock { $0.listening = listening }
  }

  /// Removes the store of a handle that is closed or released.
  func remove(_ handle: ObjectIdentifier) {
    let removed = state.withLock { $0.stores.remove(handle) }
    for observers in removed { observers.close() }
  }

  /// The age from which on every commit of every host has been reported.
  var lag: Duration {
    state.withLock { $0.completeUntil }.map { $0.duration(to: .now) } ?? .seconds(Int64.max)
  }

  /// Ends the reader and all observations.
  func close() {
    let (tasks, listening, removed) = state.withLock { state in
      state.isClosed = true
      defer { state.listening = nil }
      return (state.reading, state.listening, state.stores.removeAll())
    }
    for task in tasks { task.cancel() }
    wake.finish()
    listening?.cancel()
    for observers in removed { observers.close() }
  }

  // MARK: Own commits

  /// Reports changes of this object to its observers.
  func report(_ commit: CommittedChanges) {
    report([commit], to: state.withLock { $0.stores })
  }

  private func report(_ commit: [CommittedChanges], to stores: ObservedStores<String>) {
    guard stores.areObserving else { return }
    var record = CommitRecord<String>(isRecording: true)
    for changes in commit {
      for change in changes.changes().changes { record.append(change, in: changes.store, hasWritten: true) }
    }
    stores.report(record, followsOthers: false)
  }

  /// Reports a commit of this object, and wakes the readers of other hosts.
  ///
  /// - Parameters:
  ///   - commit: The changes.
  ///   - number: The number of the transaction, or `nil` if it is unknown whether it was committed. If it was, its row in the
  ///     feed reports it again.
  func noteCommit(_ commit: [CommittedChanges], number: String?) {
    let isRecorded = commit.contains { $0.isRecorded }
    let (stores, channel) = state.withLock { state in
      if isRecorded, let number = number.flatMap({ UInt64($0) }) { state.feed.noteReported(number) }
      return (state.stores, state.channel)
    }
    // Looked at after the commit, so that an observer that is added now reads what was committed.
    report(commit, to: stores)
    guard isRecorded, let channel else { return }
    listener.notify(channel)
    if Int.random(in: 0..<ChangeFeed.commitsPerTrimming) == 0 { trim() }
  }

  // MARK: Commits of others

  /// Reads what is new, and reports it.
  ///
  /// If this fails, the lag grows until it succeeds again.
  private func look() async {
    let position = state.withLock { $0.stores.areObserving && !$0.isClosed ? $0.feed.position : nil }
    guard let position else { return }
    let start = ContinuousClock.now
    let results = await listener.run([table.page(after: position)], within: ChangeFeed.timeout)
    guard let page = results?.first.flatMap({ FeedPage($0) }) else { return }
    let (stores, news) = state.withLock { ($0.stores, $0.feed.take(page)) }
    switch news {
    case .everything: stores.reportOthers()
    case .rows(let rows) where rows.isEmpty: break
    case .rows(let rows):
      var record = CommitRecord<String>(isRecording: true)
      for row in rows { record.append(row.change, in: row.store, hasWritten: true) }
      stores.report(record, followsOthers: false)
    }
    // Only now, because a cache may trust what it has from here on.
    state.withLock { $0.completeUntil = start }
    if page.isDueForTrimming || !page.isIdentified { trim() }
  }

  /// Removes old changes in the background, after a crash of the server also what identified the feed.
  private func trim() {
    guard pool.configuration.access == .readWrite else { return }
    let mustBegin = state.withLock { state in
      defer { state.isTrimming = true }
      return !state.isTrimming && !state.isClosed
    }
    guard mustBegin else { return }
    Task { [weak self, pool, table] in
      // If it fails, a later one does it.
      try? await pool.withSession(for: ObjectIdentifier(pool), until: .now + pool.configuration.timeout) { session in
        _ = await session.run(Request(statements: [table.identification, table.trimming]))
      }
      self?.state.withLock { $0.isTrimming = false }
    }
  }
}

/// The changes of a store in a transaction.
struct CommittedChanges: Sendable {
  let store: String
  /// A Boolean value that indicates whether they are in the change feed.
  let isRecorded: Bool
  /// A closure that returns the changes, which is called only if they are observed.
  let changes: @Sendable () -> BoundedChanges
}
#endif
