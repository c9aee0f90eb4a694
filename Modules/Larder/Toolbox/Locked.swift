public import Synchronization

/// A value that one thread at a time can use, behind a lock.
///
/// Use it in place of the standard library's `Mutex` in stores, decorators and programs, in a constant:
///
/// ```swift
/// final class HitCounter: Sendable {
///   private let hits = Locked<[StoreKey: Int]>([:])
///
///   func record(_ key: StoreKey) {
///     hits.withLock { $0[key, default: 0] += 1 }
///   }
/// }
/// ```
///
/// A `Mutex` on Linux stores the identifier of the thread that holds it, and reads it from a thread-local variable in code
/// that the compiler inlines into the caller. In a release build of an asynchronous function, the optimizer can compute the
/// address of this variable before an `await` and use it afterward, on another thread (Swift 6.3). The lock then belongs to
/// the wrong thread, and the process ends with "Call to unlock Mutex on a thread which hasn't acquired the lock", or another
/// thread waits forever. In this type, the code that reads the thread is never inlined, while the closure can be.
///
/// Waiting for the lock blocks the thread, so hold it only for short work on memory. The closure must not call code of a
/// user, and it must not use the lock again, which ends the process. Release large values after the call:
///
/// ```swift
/// let removed = entries.withLock { entries in
///   defer { entries = [:] }
///   return entries
/// }
/// // The values in `removed` are released here, where no other thread waits.
/// ```
public struct Locked<Value: ~Copyable>: ~Copyable {
  @usableFromInline
  let lock = ThreadLock()

  // The storage of the standard library's own `Mutex`, which has no other type for memory that a constant can change.
  @usableFromInline
  let cell: _Cell<Value>

  /// Creates a lock that no thread holds, around a value.
  ///
  /// - Parameter value: The initial value.
  @inlinable
  public init(_ value: consuming sending Value) {
    cell = _Cell(value)
  }

  /// Waits for the lock, and runs a closure with the value.
  ///
  /// - Parameter body: A closure that reads and changes the value.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws. Its changes to the value remain.
  @inlinable
  @inline(__always)
  public borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    lock.lock()
    defer { lock.unlock() }
    // In one expression, the thread sanitizer would take this for a change of the lock itself.
    let address = cell._address
    return try body(&address.pointee)
  }

  /// Runs a closure with the value, if no thread holds the lock.
  ///
  /// - Parameter body: A closure that reads and changes the value.
  /// - Returns: The result of `body`, or `nil` if a thread holds the lock.
  /// - Throws: The error that `body` throws. Its changes to the value remain.
  @inlinable
  @inline(__always)
  public borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result? {
    guard lock.lockIfAvailable() else { return nil }
    defer { lock.unlock() }
    // In one expression, the thread sanitizer would take this for a change of the lock itself.
    let address = cell._address
    return try body(&address.pointee)
  }
}

// Proof for @unchecked: the value is reached only by closures that run while the thread holds the lock, and a value or a
// result that crosses the border of the lock is `sending`, so that no other reference to it exists.
extension Locked: @unchecked Sendable where Value: ~Copyable {}

/// A lock whose operations are never inlined.
///
/// They have no inlinable body, and `@inline(never)` prevents that the optimizer inlines them inside of this module.
@usableFromInline
struct ThreadLock: ~Copyable, Sendable {
  private let mutex = Mutex(())

  #if DEBUG
  // A thread that waits for a mutex gets it in code of the standard library that is not instrumented, so the thread sanitizer
  // would report a race of each such pair of threads (Swift 6.3 on Linux). It sees the order of this.
  private let order = Atomic(false)
  #endif

  @usableFromInline
  init() {}

  @usableFromInline
  @inline(never)
  borrowing func lock() {
    #if DEBUG
    WorkScheduler.current?.willLock()
    #endif
    mutex._unsafeLock()
    #if DEBUG
    _ = order.load(ordering: .acquiring)
    WorkScheduler.current?.didLock()
    #endif
  }

  @usableFromInline
  @inline(never)
  borrowing func lockIfAvailable() -> Bool {
    #if DEBUG
    WorkScheduler.current?.willLock()
    #endif
    let isLocked = mutex._unsafeTryLock()
    #if DEBUG
    if isLocked {
      _ = order.load(ordering: .acquiring)
      WorkScheduler.current?.didLock()
    }
    #endif
    return isLocked
  }

  @usableFromInline
  @inline(never)
  borrowing func unlock() {
    #if DEBUG
    order.store(true, ordering: .releasing)
    #endif
    mutex._unsafeUnlock()
    #if DEBUG
    WorkScheduler.current?.didUnlock()
    #endif
  }
}
