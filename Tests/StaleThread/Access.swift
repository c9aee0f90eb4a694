// A value of a thread that Swift 6.3.1 keeps across a suspension, in a dozen lines. The module has to be compiled by itself:
//
//   swiftc -O -parse-as-library -enable-upcoming-feature NonisolatedNonsendingByDefault \
//     -emit-module -module-name StaleThread -c Access.swift -o Access.o
//   swiftc -O -parse-as-library -I . Program.swift Access.o -o Program && ./Program
//
// After the `await`, `changing` is on the thread of the closure. Both ways on, with a result and with an error, return to
// the caller's executor and unlock there. The optimizer computes the address of the thread-local variable in which the
// standard library's `Mutex` caches the thread identifier once, before both returns, and stores it in the asynchronous
// frame. The lock is then taken in the name of the thread of the closure, and given up in that of another thread:
// "Fatal error: Call to unlock Mutex on a thread which hasn't acquired the lock".

import Synchronization

/// A number that a function changes while a closure runs.
public final class Access: Sendable {
  private let value = Mutex(0)

  /// Creates the number.
  public init() {}

  /// Runs a closure with the changed number.
  public func changing<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    value.withLock { $0 = 1 }
    defer { value.withLock { $0 = 0 } }
    return try await body()
  }

  /// Returns the number.
  @inline(never)
  public func read() -> Int {
    value.withLock { $0 }
  }
}
