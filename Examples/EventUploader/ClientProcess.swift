import Foundation

/// A client in a process of its own, which can be killed.
struct ClientProcess {
  /// The end of a client.
  struct End {
    /// A Boolean value that indicates whether it was killed on purpose.
    var wasKilled: Bool
    /// The number of events that it reported as recorded.
    var recordedCount: Int
  }

  /// A client that ended with an unexpected status.
  struct Failure: Error, CustomStringConvertible {
    let status: Int32

    var description: String { "the client ended with \(status)" }
  }

  let outbox: String
  let endpoint: String

  /// Runs a client until it is done or killed.
  ///
  /// - Parameters:
  ///   - eventCount: The number of events to record.
  ///   - session: The prefix of the identifiers of the events.
  ///   - seed: The seed of the client's random pauses.
  ///   - killCount: The number of recorded events after which the client is killed, or `nil` for never.
  ///   - recorded: A closure that is called with the events that the client reports as recorded.
  /// - Throws: ``Failure``, or the error of starting a process or of `recorded`.
  func run(
    eventCount: Int, session: String, seed: UInt64, killedAfter killCount: Int?,
    recorded: @escaping @Sendable ([String]) throws -> Void
  ) async throws -> End {
    let arguments = [
      "client", "--outbox", outbox, "--endpoint", endpoint, "--events", "\(eventCount)", "--session", session, "--seed",
      "\(seed)",
    ]
    // Reading blocks and must not occupy a thread of the cooperative pool.
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
    // A client that ended before the signal arrived is not a failure.
    guard process.terminationStatus == 0 || end.wasKilled else { throw Failure(status: process.terminationStatus) }
    return end
  }

  /// The path of this program.
  private static var program: URL? {
    Bundle.main.executableURL
  }
}
