// The program that fails with the module in Access.swift: an actor with threads of its own throws from its initializer.

import Dispatch
import StaleThread

final class Threads: SerialExecutor {
  private let queue = DispatchQueue(label: "Threads")
  private let access = Access()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async {
      // A thread that has taken no lock yet has not cached its identifier, and so could not be confused with another.
      _ = self.access.read()
      job.runSynchronously(on: self.asUnownedSerialExecutor())
    }
  }
}

struct Refused: Error {}

actor Opened {
  private nonisolated let executor = Threads()
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private var count = 0

  init(refused: Bool) async throws {
    count = 1
    if refused { throw Refused() }
  }
}

@main
struct Program {
  static func main() async {
    await Task.detached {
      let access = Access()
      for _ in 0..<20_000 {
        _ = try? await access.changing { try await Opened(refused: true) }
      }
    }.value
    print("every lock was given up by the thread that took it")
  }
}
