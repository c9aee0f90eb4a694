#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import LarderTesting
import Testing

/// A trial runs a task in the same pieces as the pool of the process does: the hops are the same.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct HopSchedules {
  private struct Ended: Error {}

  private actor Inner {
    var count = 0

    func add() { count += 1 }

    func addLater() async {
      await Task.yield()
      count += 1
    }
  }

  private actor Outer {
    let inner = Inner()

    func add() async {
      await inner.add()
      await inner.addLater()
    }
  }

  private struct Subject: Sendable {
    let name: String
    let body: @Sendable () async -> Void
  }

  private static let subjects = [
    Subject(name: "an actor") { await Inner().add() },
    Subject(name: "an actor that suspends") { await Inner().addLater() },
    Subject(name: "nested actors") { await Outer().add() },
    Subject(name: "yields") { for _ in 0..<3 { await Task.yield() } },
    Subject(name: "child tasks") {
      let inner = Inner()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<3 { group.addTask { await inner.addLater() } }
      }
    },
    Subject(name: "async let") {
      let (outer, inner) = (Outer(), Inner())
      async let first: Void = outer.add()
      async let second: Void = inner.addLater()
      _ = await (first, second)
    },
    Subject(name: "a function that leaves its caller's actor") {
      await Inner().add()
      await concurrent()
    },
    Subject(name: "unstructured task") {
      await Task { await Task.yield() }.value
    },
    Subject(name: "unstructured task with an actor") {
      await Task {
        let outer = Outer()
        await outer.add()
        await outer.add()
      }.value
    },
    Subject(name: "unstructured children") {
      await Task {
        let inner = Inner()
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<3 { group.addTask { await inner.addLater() } }
        }
      }.value
    },
    Subject(name: "detached task") {
      await Task.detached { await Outer().add() }.value
    },
    Subject(name: "continuation") {
      await Task {
        await withCheckedContinuation { continuation in
          Task { continuation.resume() }
        }
      }.value
    },
    Subject(name: "immediate") {
      await Task.immediate { await Inner().add() }.value
    },
    Subject(name: "immediate outer") {
      await Task.immediate {
        let outer = Outer(); await outer.add(); await Inner().addLater()
      }.value
    },
  ]

  @concurrent private static func concurrent() async { await Task.yield() }

  @Test func hops() async throws {
    for subject in Self.subjects {
      let trial = ScheduledTrial(subject.name) { _ in
        await subject.body()
        throw Ended()
      }
      var text = ""
      do { try await trial.replay(Schedule(seed: 1)) } catch { text = "\(error)" }
      let n = try await SerialPool.run(subject.body)
      print("HOPS", subject.name, n, text.split(separator: "\n").last ?? "")
    }
  }
}

private enum SerialPool {
  private typealias Original = @convention(thin) (UnownedJob) -> Void
  private typealias Enqueue = @convention(thin) (UnownedJob, Original) -> Void

  nonisolated(unsafe) private static var previous: Enqueue?
  nonisolated(unsafe) private static var thread: pthread_t?
  nonisolated(unsafe) private static var jobs: [UnownedJob] = []

  private static let isSet: Bool = {
    guard ScheduledTrial.isAvailable, let variable = dlsym(nil, "swift_task_enqueueGlobal_hook") else { return false }
    let pointer = variable.assumingMemoryBound(to: Enqueue?.self)
    previous = pointer.pointee
    pointer.pointee = { job, original in
      if let thread = SerialPool.thread, pthread_equal(thread, pthread_self()) != 0 {
        SerialPool.jobs.append(job)
      } else if let previous = SerialPool.previous {
        previous(job, original)
      } else {
        original(job)
      }
    }
    return true
  }()

  static func run(_ body: @escaping @Sendable () async -> Void) async throws -> Int {
    guard isSet else { return -1 }
    return await withCheckedContinuation { continuation in
      let thread = Thread {
        SerialPool.thread = pthread_self()
        let generic = unsafeBitCast((UInt(0), UInt(0)), to: UnownedSerialExecutor.self)
        Task.detached { await body() }
        var count = 0
        while !jobs.isEmpty {
          let job = jobs.removeFirst()
          count += 1
          job.runSynchronously(on: generic)
        }
        SerialPool.thread = nil
        continuation.resume(returning: count)
      }
      thread.start()
    }
  }
}
