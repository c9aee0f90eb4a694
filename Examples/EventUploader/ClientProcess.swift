import Foundation

/// A client in a process of its own, which can be killed.
struct ClientProcess {
  /// How a client ended.
  struct End {
    /// Whether it was killed, on purpose.
    var wasKilled: Bool
    /// How many events it said that it had recorded.
    var recordedCount: Int
  }

  /// A client ended otherwise than it should.
  struct Failure: Error, CustomStringConvertible {
    let status: Int32

    var description: String { "the client ended with \(status)" }
  }

  let outbox: String
  let endpoint: String

  /// Runs a client until it is done or killed.
  ///
  /// - Parameters:
  ///   - eventCount: How many events it records.
  ///   - session: What their names begin with.
  ///   - seed: What its pauses are drawn from.
  ///   - killCount: After how many recorded events it is killed; `nil` for never.
  ///   - recorded: Gets the events that it says it has recorded, as they come.
  /// - Throws: ``Failure``; what starting a process and `recorded` throw.
  func run(
    eventCount: Int, session: String, seed: UInt64, killedAfter killCount: Int?,
    recorded: @escaping @Sendable ([String]) throws -> Void
  ) async throws -> End {
    let arguments = [
      "client", "--outbox", outbox, "--endpoint", endpoint, "--events", "\(eventCount)", "--session", session, "--seed",
      "\(seed)",
    ]
    // Reading waits, and must not hold a thread of the pool.
    return try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<End, any Error>) in
      Thread.detachNewThread {
        continuation.resume(
          with: Result { try Self.run(arguments, killedAfter: killCount, recorded: recorded) })
      }
    }
  }

  private static func run(
    _ arguments: [String], killedAfter killCount: Int?, recorded: ([String]) throws -> Void
  ) throws -> End {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    var end = End(wasKilled: false, recordedCount: 0)
    var lines = LineGatherer()
    while true {
      let bytes = pipe.fileHandleForReading.availableData
      guard !bytes.isEmpty else { break }
      let names = lines.append(bytes)
      do {
        try recorded(names)
      } catch {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        throw error
      }
      end.recordedCount += names.count
      if let killCount, !end.wasKilled, end.recordedCount >= killCount {
        end.wasKilled = true
        kill(process.processIdentifier, SIGKILL)
      }
    }
    process.waitUntilExit()
    // A client that was done before the signal came is no failure either.
    guard process.terminationStatus == 0 || end.wasKilled else { throw Failure(status: process.terminationStatus) }
    return end
  }

  /// This program.
  private static var program: URL? {
    Bundle.main.executableURL
  }
}
