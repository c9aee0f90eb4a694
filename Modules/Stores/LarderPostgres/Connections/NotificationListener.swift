#if Postgres
import Larder

/// The notifications of a database, for its queues and its change feed: a session that listens to channels and notifies
/// others, beside those of the pool.
///
/// A notification only wakes those who wait, so nothing depends on one: those who wait also look by themselves from time to
/// time. It is never sent by a transaction that writes, because PostgreSQL lets only one such transaction of the whole
/// server commit at a time.
final class NotificationListener: Sendable {
  private struct Observer: Sendable {
    /// A Boolean value that indicates whether the notifications of this listener are not for it.
    let ignoresOwn: Bool
    let receive: @Sendable () -> Void
  }

  private struct State {
    var lastNumber = 0
    /// The task that has connected the session, until that is lost.
    var connecting: Task<Session?, Never>?
    var observers: [String: [Int: Observer]] = [:]
    /// The task that listens.
    var listening: Task<Void, Never>?
    /// The channels to notify, which grow while a notification is under way.
    var pending: Set<String> = []
    /// The task that notifies.
    var notifying: Task<Void, Never>?
    /// A Boolean value that indicates whether no more notifications are taken.
    var isClosed = false
    /// A Boolean value that indicates whether nothing is sent any more.
    var hasEnded = false
  }

  /// The time after which a connection that was lost is made again.
  private static let pause = Duration.seconds(1)

  /// The time limit of making the connection, if that of the database is not shorter.
  private static let connectLimit = Duration.seconds(10)

  /// The time limit of a notification, after which the connection is given up.
  private static let limit = Duration.seconds(2)

  /// The pause after a notification, during which further ones wait, because many of them would slow down writes.
  private static let interval = Duration.milliseconds(5)

  private let pool: SessionPool
  private let state = Locked(State())

  /// The events that the listening task waits for: the connection is lost, or there is another channel.
  private let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  /// Creates a listener without a connection.
  init(_ pool: SessionPool) {
    self.pool = pool
  }

  deinit {
    close()
  }

  /// Calls a closure after each notification of a channel, and whenever some may have been lost.
  ///
  /// - Parameters:
  ///   - channel: The channel.
  ///   - ignoresOwn: A Boolean value that indicates whether the closure is not called after those of ``notify(_:)``.
  ///     Defaults to `false`.
  ///   - body: A closure that returns quickly. It is called on the thread that receives the answers of the database.
  /// - Returns: The observation. It ends when it is cancelled or released.
  func observe(
    _ channel: String, ignoresOwn: Bool = false, _ body: @escaping @Sendable () -> Void
  ) -> StoreObservation {
    let number = state.withLock { state in
      state.lastNumber += 1
      state.observers[channel, default: [:]][state.lastNumber] = Observer(ignoresOwn: ignoresOwn, receive: body)
      if state.listening == nil, !state.isClosed {
        state.listening = Task { [weak self, changes] in
          // The first time, and after each change.
          repeat { await self?.listen() } while await changes.first { _ in true } != nil
        }
      } else {
        change.yield()
      }
      return state.lastNumber
    }
    return StoreObservation { [weak self] in
      let removed = self?.state.withLock { $0.observers[channel]?.removeValue(forKey: number) }
      // Released here, outside of the lock.
      _ = removed
    }
  }

  /// Notifies those who listen to a channel, soon and without waiting.
  ///
  /// While a notification is under way, and for a few milliseconds after it, further ones of the same channel become one.
  func notify(_ channel: String) {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.pending.insert(channel)
      guard state.notifying == nil else { return }
      state.notifying = Task { [weak self] in
        while let channels = self?.takePending() {
          // If this fails, those who wait look by themselves.
          let statements = channels.map { Statement("SELECT pg_notify($1, '')::text", .text($0)) }
          _ = await self?.run(statements, within: NotificationListener.limit)
          // Ends early when the listener is closed.
          try? await Task.sleep(for: NotificationListener.interval)
        }
      }
    }
  }

  /// Sends the notifications that are pending, and closes the listener.
  func finish() async {
    let task = state.withLock { state in
      state.isClosed = true
      return state.notifying
    }
    task?.cancel()
    await task?.value
    close()
  }

  /// Ends all observations and the session, without the notifications that are pending.
  func close() {
    let (listening, connecting) = state.withLock { state in
      (state.isClosed, state.hasEnded) = (true, true)
      return (state.listening, state.connecting)
    }
    listening?.cancel()
    change.finish()
    Task { await connecting?.value?.close() }
  }

  /// Runs statements that change no data, on the session that listens, which waits for no session of the pool.
  ///
  /// - Parameters:
  ///   - statements: The statements.
  ///   - limit: The time limit, if that of the database is not shorter. The connection is given up after it. Defaults to
  ///     `nil`.
  /// - Returns: The results, or `nil` if that failed.
  func run(_ statements: [Statement], within limit: Duration? = nil) async -> [QueryResult]? {
    let connecting = state.withLock { state in
      if state.connecting == nil, !state.hasEnded { state.connecting = Task { [weak self] in await self?.connect() } }
      return state.connecting
    }
    guard let session = await connecting?.value else { return nil }
    guard pool.isOnCurrentServer(session) else {
      // The server that has taken over is the one to listen to, although the old one keeps the connection.
      session.close(because: PostgresError(sqlState: "", message: "another server has taken over"))
      return nil
    }
    let timeout = pool.configuration.timeout
    let response = await session.run(
      Request(statements: statements, deadline: .now + min(limit ?? timeout, timeout)))
    return response.failure == nil ? response.results : nil
  }

  private func connect() async -> Session? {
    var configuration = pool.configuration
    // A crash that discards a notification also ends all who listen, so its commit need not wait for the disk.
    configuration.durability = .buffered
    // A look is one statement that changes nothing. A serializable one would take locks that writes run into.
    (configuration.isolation, configuration.access) = (.readCommitted, .readOnly)
    let session = try? await pool.connect(
      configuration, until: .now + min(configuration.timeout, NotificationListener.connectLimit),
      onNotification: { [weak self] in self?.report($0.channel, isOwn: $0.isOwn) },
      onLoss: { [weak self] _, _ in
        self?.state.withLock { $0.connecting = nil }
        self?.change.yield()
      })
    if session == nil { state.withLock { $0.connecting = nil } }
    return session
  }

  private func takePending() -> Set<String>? {
    state.withLock { state in
      if state.pending.isEmpty {
        state.notifying = nil
        return nil
      }
      defer { state.pending = [] }
      return state.pending
    }
  }

  /// Listens to all channels that are observed, on a connection that may be new.
  private func listen() async {
    let channels = state.withLock { $0.observers.filter { !$0.value.isEmpty }.keys.sorted() }
    guard !channels.isEmpty else { return }
    let statements = channels.map { Statement.command("LISTEN \(SessionConfiguration.quoted($0))") }
    if await run(statements) == nil {
      // Ends early if the listener is closed.
      try? await Task.sleep(for: NotificationListener.pause)
      change.yield()
    }
    for channel in channels { report(channel) }
  }

  private func report(_ channel: String, isOwn: Bool = false) {
    let observers = state.withLock { $0.observers[channel].map { Array($0.values) } ?? [] }
    for observer in observers where !isOwn || !observer.ignoresOwn { observer.receive() }
  }
}
#endif
