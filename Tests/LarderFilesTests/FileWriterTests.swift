import Foundation
import Larder
import LarderFiles
import LarderTesting
import TestSupport
import Testing

/// The writer of a store's file, whose short writes run on the caller's thread if nothing else uses the file.
struct FileWriterTests {
  private struct File: Sendable {
    var count = 0
    var users = 0
  }

  private func writer() async throws -> FileWriter<File> {
    let configuration = StoreFileConfiguration(
      path: "/file", durability: .buffered, createsIfMissing: true, fileSystem: SimulatedFileSystem(seed: 1))
    return try await FileWriter(label: "FileWriterTests", configuration, content: SharedContent(0)) { File() }
  }

  @Test func `a write to an idle file runs on the thread of its caller`() async throws {
    let writer = try await writer()
    let caller = Locked<ThreadIdentity?>(nil)
    let thread = try await Task.detached {
      // The files are in use until the thread of the writer has left the operation that opened them.
      while true {
        caller.withLock { $0 = .current }
        let thread = try writer.writeInPlace(if: { $0.count == 0 }) { writer in
          try writer.write(.apply) { $0.count += 1 }
          return ThreadIdentity.current
        }
        if let thread { return thread }
        await Task.yield()
      }
    }.value
    #expect(thread == caller.withLock(\.self))
    #expect(try await writer.run(.count) { $0.count } == 1)
    let other = try await writer.run(.count) { _ in ThreadIdentity.current }
    #expect(other != thread)
  }

  @Test func `a long write is left to the thread of the writer`() async throws {
    let writer = try await writer()
    let result: Void? = try await Task.detached {
      try writer.writeInPlace(if: { _ in false }, { try $0.write(.apply) { $0.count += 1 } })
    }.value
    #expect(result == nil)
    #expect(try await writer.run(.count) { $0.count } == 0)
  }

  @Test func `the main actor does not write in place`() async throws {
    let writer = try await writer()
    let result = try await MainActor.run { () -> Int? in
      try writer.writeInPlace(if: { _ in true }, { try $0.write(.apply) { $0.count } })
    }
    #expect(result == nil)
  }

  @Test func `a write does not overtake an operation that uses the file`() async throws {
    let writer = try await writer()
    let (started, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let running = Task {
      try await writer.run(.verify) { file in
        started.signal()
        mayEnd.wait()
        file.count = 7
      }
    }
    await DispatchQueueExecutor(label: "waiting").run { started.wait() }
    let result: Void? = try await Task.detached {
      try writer.writeInPlace(if: { _ in true }, { try $0.write(.apply) { $0.count += 1 } })
    }.value
    #expect(result == nil)
    mayEnd.signal()
    try await running.value
    #expect(try await writer.run(.count) { $0.count } == 7)
  }

  @Test func `an operation that arrives during a write in place runs after it`() async throws {
    let writer = try await writer()
    let (started, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let writing = Task.detached {
      try await DispatchQueueExecutor(label: "a caller").run {
        func write() throws -> Void? {
          try writer.writeInPlace(if: { _ in true }) { writer in
            started.signal()
            mayEnd.wait()
            try writer.write(.apply) { $0.count += 1 }
          }
        }
        while try write() == nil { sched_yield() }
      }
    }
    await DispatchQueueExecutor(label: "waiting").run { started.wait() }
    let hasRead = Flag()
    let reading = (0..<3).map { _ in
      Task {
        let count = try await writer.run(.count) { $0.count }
        hasRead.set()
        return count
      }
    }
    for _ in 0..<100 { await Task.yield() }
    #expect(!hasRead.isSet)
    mayEnd.signal()
    try await writing.value
    for task in reading { #expect(try await task.value == 1) }
  }

  @Test func `a closed writer refuses writes in place`() async throws {
    let writer = try await writer()
    await writer.stopReading()
    try await writer.close { _ in }
    let error = await #expect(throws: StoreError.self) {
      func write() async throws -> Void? {
        try await Task.detached {
          try writer.writeInPlace(if: { _ in true }, { try $0.write(.apply) { $0.count += 1 } })
        }.value
      }
      // The files are in use until the thread of the writer has left the operation that closed them.
      while try await write() == nil { await Task.yield() }
    }
    #expect(error?.code == .closed)
  }

  @Test func `many tasks use the file one after another`() async throws {
    let writer = try await writer()
    let count = 2_000
    let inPlaceCount = try await withThrowingTaskGroup(of: Int.self) { group in
      for task in 0..<8 {
        group.addTask {
          @Sendable func use(_ file: inout File) throws {
            file.users += 1
            try #require(file.users == 1)
            file.count += 1
            file.users -= 1
          }
          var inPlaceCount = 0
          for _ in 0..<count {
            let isDone: Void? =
              task.isMultiple(of: 2) ? try writer.writeInPlace(if: { _ in true }, { try $0.write(.apply, use) }) : nil
            if isDone == nil { try await writer.write(.apply, use) } else { inPlaceCount += 1 }
          }
          return inPlaceCount
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(try await writer.run(.count) { $0.count } == 8 * count)
    #expect(inPlaceCount > 0)
  }
}
