import Dispatch
import Larder
import LarderFiles
import Testing

/// The lock of all modules, on threads that wait for each other and in asynchronous functions that change threads.
@Suite struct LockedTests {
  @Test func `one thread at a time changes the value`() {
    let count = Locked(0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<10_000 { count.withLock { $0 += 1 } }
    }
    #expect(count.withLock { $0 } == 80_000)
  }

  @Test func `a thrown error gives up the lock and keeps the change`() {
    struct Refused: Error {}
    let count = Locked(0)
    #expect(throws: Refused.self) {
      try count.withLock { count throws(Refused) in
        count = 7
        throw Refused()
      }
    }
    #expect(count.withLockIfAvailable { $0 } == 7)
  }

  @Test func `a held lock is not available to other threads`() async {
    let count = Locked(1)
    let (isHeld, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        count.withLock { count in
          isHeld.signal()
          mayEnd.wait()
          count = 2
        }
        continuation.resume()
      }
      DispatchQueue.global().async {
        isHeld.wait()
        #expect(count.withLockIfAvailable { $0 } == nil)
        mayEnd.signal()
      }
    }
    #expect(count.withLockIfAvailable { $0 } == 2)
  }

  /// A value that cannot be copied.
  private struct Token: ~Copyable {
    var number: Int
  }

  @Test func `the value may be one that cannot be copied`() {
    let token = Locked(Token(number: 1))
    let replaced = token.withLock { token in
      let replaced = token.number
      token = Token(number: replaced + 1)
      return replaced
    }
    #expect(replaced == 1)
    #expect(token.withLock { $0.number } == 2)
  }

  /// An actor with threads of its own, whose initializer throws on them.
  private actor Opened {
    private nonisolated let executor = DispatchQueueExecutor(label: "LockedTests")
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(number: Int) async throws {
      guard number.isMultiple(of: 2) else { throw CancellationError() }
    }
  }

  /// A lock that an asynchronous function takes after a suspension, on each of its ways out.
  ///
  /// In a release build with the standard library's `Mutex` in place of `Locked`, this ends the process.
  private final class Changes: Sendable {
    private let running = Locked(0)

    @inline(never)
    func during<Result>(_ body: () async throws -> Result) async rethrows -> Result {
      running.withLock { $0 += 1 }
      defer { running.withLock { $0 -= 1 } }
      return try await body()
    }

    var count: Int { running.withLock { $0 } }
  }

  @Test func `an asynchronous function locks on the thread it runs on`() async {
    let changes = Changes()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for number in 0..<500 {
            do {
              _ = try await changes.during { try await Opened(number: task + number) }
            } catch {
              #expect(error is CancellationError)
            }
          }
        }
      }
    }
    #expect(changes.count == 0)
  }
}
