/// A queue whose deliveries can be paused, for all programs that share it.
///
/// Pause a queue while the service that its items need is down, or before you change what its items mean:
///
/// ```swift
/// try await queue.pause()
/// try await migrate(database)
/// try await queue.resume()
/// ```
///
/// That a queue is paused is stored with it, so it outlives all programs until one of them resumes the queue. While it is
/// paused:
///
/// - No call of ``DurableQueue/receive(max:lease:)`` that begins afterward returns an item, and
///   ``DurableQueue/nextDelivery(lease:)`` waits, in every program that shares the queue. So a worker processes no further
///   items.
/// - Everything else continues: items are enqueued, and those that were received before are acknowledged, released and
///   extended. Delays and leases end.
///
/// When the queue is resumed, waiting consumers receive items as if these had just been enqueued.
///
/// Decorators forward this capability. If the type of a queue is known only at run time, use
/// ``AnyDataStore/pausableQueue``.
public protocol PausableQueue<Value>: DurableQueue {
  /// Pauses the queue. If it is paused already, nothing changes.
  ///
  /// A call of ``DurableQueue/receive(max:lease:)`` that runs at the same time can still return items.
  ///
  /// ```swift
  /// try await queue.pause()  // consumers wait, and producers continue to enqueue
  /// try await migrateDatabase()
  /// try await queue.resume()
  /// ```
  ///
  /// - Throws: ``StoreError`` with `notPermitted` if the queue is open for reading only; `closed`; `full`; `ioFailed`.
  ///   `CancellationError`.
  func pause() async throws

  /// Resumes the queue, and wakes waiting consumers. If it is not paused, nothing changes.
  ///
  /// - Throws: The same errors as ``pause()``.
  func resume() async throws

  /// Returns whether the queue is paused.
  ///
  /// - Throws: ``StoreError`` with `closed`; `ioFailed`. `CancellationError`.
  func isPaused() async throws -> Bool
}

extension StoreDecorator where Base: PausableQueue {
  /// Pauses the base; see ``PausableQueue/pause()``.
  public func pause() async throws {
    try await forward(.pause, of: nil) { try await base.pause() }
  }

  /// Resumes the base; see ``PausableQueue/resume()``.
  public func resume() async throws {
    try await forward(.resume, of: nil) { try await base.resume() }
  }

  /// Returns whether the base is paused; see ``PausableQueue/isPaused()``.
  public func isPaused() async throws -> Bool {
    try await forward(.isPaused, of: nil) { try await base.isPaused() }
  }
}
