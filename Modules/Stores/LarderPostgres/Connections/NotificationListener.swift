#if Postgres
import Larder

/// The notifications of a database: a session that listens to channels and notifies others, beside those of the pool.
///
/// A notification only wakes those who wait, so nothing depends on one: those who wait also look by themselves from time to
/// time. It is never sent by a transaction that writes, because PostgreSQL lets only one such transaction of the whole
/// server commit at a time.
final class NotificationListener: Sendable {
  private struct State {
    var lastNumber = 0
    var observers: [String: [Int: @Sendable () -> Void]] = [:]
    /// The task that listens.
    var listening: Task<Void, Never>?
    /// The channels to notify, which grow while a notification is under way.
    var pending: Set<String> = []
    /// The task that notifies.
    var notifying: Task<Void, Never>?
    var isClosed = false
  }

  /// The time after which a connection that was lost is made again.
  private static let pause = Duration.seconds(1)

  /// The pause after a notification, so that many of them do not slow down writes.
  private static let interval = Duration.milliseconds(5)

  private let session: Session
  private let state = Locked(State())

  /// The events that the listening task waits for: the connection is lost, or there is another channel.
  private let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  /// Creates a listener without a connection.
  ///
  /// - Throws: ``PostgresError``.
  init(_ configuration: SessionConfiguration) throws(PostgresError) {
    var configuration = configuration
    // A crash that discards a notification also ends all who listen, so its commit need not wait for the disk.
    configuration.durability = .buffered
    // The session outlives no listener, but must not keep it.
    let listener = Locked<@Sendable (String?) -> Void>({ _ in })
    session = try Session(
      configuration, onNotification: { channel in listener.withLock { $0 }(channel) },
      onLoss: { listener.withLock { $0 }(nil) })
    listener.withLock { closure in
      closure = { [weak self] channel in
        if let channel { self?.report(channel) } else { self?.change.yield() }
      }
    }
  }

  /// Calls a closure after each notification of a channel, and whenever some may have been lost.
  ///
  /// - Parameters:
  ///   - channel: The channel.
  ///   - body: A closure that returns quickly. It is called on the thread of the session.
  /// - Returns: The observation, which ends when it is cancelled or released.
  func observe(_ channel: String, _ body: @escaping @Sendable () -> Void) -> StoreObservation {
    let number = state.withLock { state in
      state.lastNumber += 1
      state.observers[channel, default: [:]][state.lastNumber] = body
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
          let statements = channels.map { Statement("SELECT pg_notify($1, '')::text", .text($0)) }
          // If this fails, those who wait look by themselves.
          _ = await self?.session.run(Session.Request(statements: statements))
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
    let task = state.withLock { state in
      state.isClosed = true
      return state.listening
    }
    task?.cancel()
    change.finish()
    session.close()
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
    let statements = channels.map { channel in
      Statement("LISTEN \(SessionConfiguration.quoted(channel))", [], isPrepared: false)
    }
    let response = await session.run(Session.Request(statements: statements))
    if response.failure != nil {
      // Ends early if the listener is closed.
      try? await Task.sleep(for: NotificationListener.pause)
      change.yield()
    }
    for channel in channels { report(channel) }
  }

  private func report(_ channel: String) {
    let observers = state.withLock { $0.observers[channel].map { Array($0.values) } ?? [] }
    for observer in observers { observer() }
  }
}
#endif
