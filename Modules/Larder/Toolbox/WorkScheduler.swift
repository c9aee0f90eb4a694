import Foundation
import Synchronization

/// A scheduler that orders all work of a thread, so a test can try every order.
///
/// `ScheduledTrial` of `LarderTesting` is built on it. While a thread runs work of a scheduler, executors give it their work in
/// place of a queue of their own, and ``Locked`` tells it when the thread takes and releases a lock, between which no other
/// work may run. Both do so in debug builds only.
///
/// An executor of your own takes part in trials with these lines:
///
/// ```swift
/// #if DEBUG
/// if let scheduler = WorkScheduler.current { return scheduler.schedule(on: self, named: label, work) }
/// #endif
/// ```
public final class WorkScheduler {
  private let take: (_ executor: AnyObject, _ name: String, _ work: @escaping @Sendable () -> Void) -> Void
  private let reachPoint: () -> Void
  private var heldLocks = 0

  /// Creates a scheduler.
  ///
  /// - Parameters:
  ///   - take: A closure that takes work of an executor, which runs its work in order and one after another.
  ///   - reachPoint: A closure that is called where other work may run in the middle of this one: before the thread takes its
  ///     first lock, and after it has released its last one.
  public init(
    taking take: @escaping (_ executor: AnyObject, _ name: String, _ work: @escaping @Sendable () -> Void) -> Void,
    reachingPoint reachPoint: @escaping () -> Void
  ) {
    self.take = take
    self.reachPoint = reachPoint
  }

  // MARK: The scheduler of a thread

  /// The number of threads that run work of a scheduler, so all others pay for one load only.
  private static let threads = Atomic(0)

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    // Without a key, no thread ever has a scheduler.
    return pthread_key_create(&key, nil) == 0 ? key : pthread_key_t.max
  }()

  /// The scheduler whose work the thread is running, or `nil`.
  public static var current: WorkScheduler? {
    guard threads.load(ordering: .relaxed) > 0, let pointer = pthread_getspecific(key) else { return nil }
    return Unmanaged<WorkScheduler>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Runs a closure as work of this scheduler.
  ///
  /// - Parameter body: The closure, during which ``current`` is this scheduler.
  public func run(_ body: () -> Void) {
    let outer = pthread_getspecific(Self.key)
    let outerLocks = heldLocks
    heldLocks = 0
    Self.threads.add(1, ordering: .relaxed)
    _ = pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
    body()
    _ = pthread_setspecific(Self.key, outer)
    Self.threads.subtract(1, ordering: .relaxed)
    heldLocks = outerLocks
  }

  // MARK: Executors and locks

  /// Takes work of an executor, and runs after the earlier work of the same executor.
  ///
  /// - Parameters:
  ///   - executor: The executor.
  ///   - name: The name of the executor in traces.
  ///   - work: The work.
  public func schedule(on executor: AnyObject, named name: String, _ work: @escaping @Sendable () -> Void) {
    take(executor, name, work)
  }

  /// Notes that the thread is going to take a lock, or to try.
  func willLock() {
    if heldLocks == 0 { reachPoint() }
  }

  /// Notes that the thread has taken a lock.
  func didLock() {
    heldLocks += 1
  }

  /// Notes that the thread has released a lock.
  func didUnlock() {
    heldLocks -= 1
    if heldLocks == 0 { reachPoint() }
  }
}
