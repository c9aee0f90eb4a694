import Foundation

/// The exit code and the output of a finished process.
struct ToolRun: Equatable {
  var status: Int32
  var output: String
  var errors: String

  /// Runs a program to its end.
  static func run(_ executable: String, _ arguments: [String], input: String = "") async throws -> ToolRun {
    // Files instead of pipes, because a full pipe would block the process.
    let folder = try TemporaryFolder()
    let inputPath = try folder.write(input, to: "input")
    let outputPath = try folder.write("", to: "output")
    let errorsPath = try folder.write("", to: "errors")
    await RunLimit.shared.enter()
    let result: Result<Int32, any Error>
    do {
      result = .success(try await start(executable, arguments, [inputPath, outputPath, errorsPath]))
    } catch {
      result = .failure(error)
    }
    await RunLimit.shared.leave()
    return ToolRun(
      status: try result.get(), output: try String(contentsOfFile: outputPath, encoding: .utf8),
      errors: try String(contentsOfFile: errorsPath, encoding: .utf8))
  }

  /// Runs a program with the files of its standard input, output and error.
  ///
  /// - Returns: Its exit code, or the negative number of the signal that ended it.
  private static func start(_ executable: String, _ arguments: [String], _ paths: [String]) async throws -> Int32 {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    let handles = [
      try FileHandle(forReadingFrom: URL(fileURLWithPath: paths[0])),
      try FileHandle(forWritingTo: URL(fileURLWithPath: paths[1])),
      try FileHandle(forWritingTo: URL(fileURLWithPath: paths[2])),
    ]
    process.standardInput = handles[0]
    process.standardOutput = handles[1]
    process.standardError = handles[2]
    try await process.runToEnd()
    // The handles stay open after the process has ended, and thousands of runs would use up all descriptors.
    for handle in handles { try handle.close() }
    return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
  }
}

/// A limit for the number of programs that run at the same time.
///
/// To start a program, Foundation copies the entries of the folder of open files, and with some 1,300 of them it reads
/// beyond their memory, which has ended a whole test run.
private actor RunLimit {
  static let shared = RunLimit()

  private var freeCount = 32
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func enter() async {
    guard freeCount == 0 else {
      freeCount -= 1
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  func leave() {
    if waiting.isEmpty {
      freeCount += 1
    } else {
      waiting.removeFirst().resume()
    }
  }
}

extension Process {
  /// Starts the process and waits for its end without blocking a thread.
  func runToEnd() async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      terminationHandler = { _ in continuation.resume() }
      do {
        try run()
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }
}
