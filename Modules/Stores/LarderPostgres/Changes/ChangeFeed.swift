#if Postgres
import Larder
import Synchronization

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
    /// The number in the rows that this object writes, and that its reader leaves out.
    var origin = Int64.random(in: .min ... .max)
    /// The time until which all commits of others are reported.
    var completeUntil: ContinuousClock.Instant?
    /// The times when the running commits of this object began, by their numbers.
    var commits: [UInt64: ContinuousClock.Instant] = [:]
    var lastCommit: UInt64 = 0
    var reading: [Task<Void, Never>] = []
    var listening: StoreObservation?
    var isTrimming = false
    /// The time of the first look that failed since one succeeded.
    var firstFailure: ContinuousClock.Instant?
    var hasReportedFailure = false
    var isClosed = false
  }

  /// The longest time between two looks, of which a cache needs one within a second.
  private static let interval = Duration.milliseconds(500)

  /// The time limit of a look, after which the connection is given up.
  private static let timeout = Duration.seconds(2)

  /// The time without a successful look after which an event reports it.
  private static let reportedDelay = Duration.seconds(5)

  /// One commit of so many also looks whether old changes are to be removed, because the feed may have no reader.
  private static let commitsPerTrimming = 4096

  private let pool: SessionPool
  private let listener: NotificationListener
  private let table: FeedTable
  private let state = Locked(State())

  /// The time until which every commit is reported, in microseconds since the start, or `Int64.min` before the first look.
  ///
  /// Each hit of a cache reads it. So it is beside the lock, under which it is written.
  private let knownTime = Atomic(Int64.min)
  private let start = ContinuousClock.now

  /// The pause after a look, during which notifications wait.
  private static let pause = Duration.milliseconds(5)

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
  /// - Returns: A Boolean value that indicates whether the server has a feed that can be read. A standby doesn't.
  /// - Throws: ``StoreError``.
  func begin(for handle: PostgresHandle) async throws -> Bool {
    guard state.withLock({ $0.channel == nil }) else { return true }
    let channel = try await handle.read(table.channel, for: .open).text(0, 0)
    func readPage() async throws -> FeedPage {
      guard let page = FeedPage(try await handle.read(table.page(after: nil, without: origin), for: .open)) else {
        throw StoreError(.corrupted, during: .open, store: handle.name, message: "the change feed cannot be read")
      }
      return page
    }
    var page: FeedPage
    do {
      page = try await readPage()
    } catch let error as StoreError where (error.underlying as? PostgresError)?.sqlState == "0A000" {
      // Unlogged tables cannot be read during recovery.
      return false
    }
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
    return true
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
        Task { [weak self, wakes] in
          for await _ in wakes {
            await self?.look()
            // Ends early when the feed is closed.
            try? await Task.sleep(for: ChangeFeed.pause)
          }
        },
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
    let listening = listener.observe(channel, ignoresOwn: true) { [wake] in wake.yield() }
    state.withLock { $0.listening = listening }
  }

  /// Removes the store of a handle that is closed or released.
  func remove(_ handle: ObjectIdentifier) {
    let removed = state.withLock { $0.stores.remove(handle) }
    for observers in removed { observers.close() }
  }

  /// The age from which on every commit of every host has been reported.
  var lag: Duration {
    let time = knownTime.load(ordering: .acquiring)
    return time == .min ? .seconds(Int64.max) : (start + .microseconds(time)).duration(to: .now)
  }

  /// Changes what is known of the time until which every commit is reported.
  private func updateKnownTime(_ change: (inout State) -> Void) {
    state.withLock { state in
      change(&state)
      guard let completeUntil = state.completeUntil else { return }
      let time = start.duration(to: state.commits.values.reduce(completeUntil, min))
      knownTime.store(time.wholeMicroseconds, ordering: .releasing)
    }
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

  /// The number to record with the changes of this object, which its reader leaves out because their writer reports them.
  var origin: Int64 { state.withLock { $0.origin } }

  /// Notes that a commit begins, until ``endCommit(_:)``.
  ///
  /// The reader leaves its row out, so it is unreported from the moment when the server commits until its writer reports it.
  ///
  /// - Returns: The number of the commit.
  func beginCommit() -> UInt64 {
    state.withLock { state in
      state.lastCommit += 1
      state.commits[state.lastCommit] = .now
      return state.lastCommit
    }
  }

  /// Notes that a commit has been reported, or did not happen.
  func endCommit(_ number: UInt64) {
    updateKnownTime { $0.commits[number] = nil }
  }

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
  ///   - isCertain: A Boolean value that indicates whether it is known that they were committed. If not, the server may
  ///     commit them later, so their row in the feed reports them again.
  func noteCommit(_ commit: [CommittedChanges], isCertain: Bool) {
    let isRecorded = commit.contains { $0.isRecorded }
    let (stores, channel) = state.withLock { state in
      // The reader no longer leaves out the rows with the former number.
      if isRecorded, !isCertain { state.origin = .random(in: .min ... .max) }
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
    let (position, origin) = state.withLock { state in
      (state.stores.areObserving && !state.isClosed ? state.feed.position : nil, state.origin)
    }
    guard let position else { return }
    let start = ContinuousClock.now
    let results = await listener.run([table.page(after: position, without: origin)], within: ChangeFeed.timeout)
    guard let page = results?.first.flatMap({ FeedPage($0) }) else { return noteFailure(at: start) }
    let taken = state.withLock { state in
      // A commit whose outcome was unknown may be among the rows that the page leaves out.
      state.origin == origin ? (state.stores, state.feed.take(page)) : nil
    }
    guard let (stores, news) = taken else {
      wake.yield()
      return
    }
    switch news {
    case .everything: stores.reportOthers()
    case .rows(let rows) where rows.isEmpty: break
    case .rows(let rows):
      var record = CommitRecord<String>(isRecording: true)
      // As a range, because a cache takes the first report of a key that it is writing for that of its own write.
      for row in rows { record.append(.range(row.change.range), in: row.store, hasWritten: true) }
      stores.report(record, followsOthers: false)
    }
    // Only now, because a cache may trust what it has from here on.
    updateKnownTime { state in
      state.completeUntil = start
      (state.firstFailure, state.hasReportedFailure) = (nil, false)
    }
    if page.isDueForTrimming || !page.isIdentified { trim() }
  }

  /// Reports the first of the looks that have failed for longer than ``reportedDelay``.
  private func noteFailure(at time: ContinuousClock.Instant) {
    let delay = state.withLock { state -> Duration? in
      let first = state.firstFailure ?? time
      state.firstFailure = first
      let delay = first.duration(to: .now)
      guard delay >= ChangeFeed.reportedDelay, !state.hasReportedFailure else { return nil }
      state.hasReportedFailure = true
      return delay
    }
    if let delay { pool.noteUnreadChanges(delay) }
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
        var response = await session.run(Request(statements: [table.identification, table.trimming]))
        while response.failure == nil, response.results.last?.rowCount == 1 {
          response = await session.run(Request(statements: [table.removal]))
        }
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
