import ArgumentParser
import Foundation
import Larder
import StoreAccess

/// `larder inspect`.
struct InspectCommand: AsyncParsableCommand {
  /// The program that it starts, which is built apart because it needs a web server.
  static let program = "larder-inspect"

  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Show stores and queues in a browser.",
    discussion: """
      Starts the program larder-inspect, which is beside larder or in a folder of PATH, with all arguments. \
      `larder inspect --help` prints its options. `make inspect` builds it.

        larder inspect json:users.json sqlite:shop.sqlite#users
        larder inspect lmdb:shop --queue jobs/ --write
      """)

  @Argument(
    parsing: .captureForPassthrough,
    help: ArgumentHelp("The stores and the options of larder-inspect.", valueName: "argument"))
  var arguments: [String] = []

  func run() throws {
    let path = Self.path(beside: Bundle.main.executablePath, search: ProcessInfo.processInfo.environment["PATH"] ?? "")
    if path == nil, arguments.contains(where: { ["--help", "-h"].contains($0) }) { throw CleanExit.helpRequest(self) }
    guard let path else {
      throw CommandFailure(
        .noInput, "\(Self.program) is neither beside larder nor in a folder of PATH",
        advice:
          "Build it with `make inspect` in the repository of Larder, which prints its path, and copy it beside larder.")
    }
    // The option is not among the arguments any more.
    let configuration = ConfiguredStacks.path.map { ["--config", $0] } ?? []
    let words = ([path] + configuration + arguments).map { strdup($0) } + [nil]
    execv(path, words)
    throw CommandFailure(.internalFailure, "cannot start \(path): \(String(cString: strerror(errno)))")
  }

  /// Returns the path of the program.
  ///
  /// - Parameters:
  ///   - executable: The path of the tool, or `nil` if it is unknown.
  ///   - search: The folders of `PATH`. A relative one is ignored, because any folder can hold a program of that name.
  /// - Returns: The path, or `nil` if there is no such program.
  static func path(beside executable: String?, search: String) -> String? {
    let own = executable.map { URL(filePath: $0).resolvingSymlinksInPath().deletingLastPathComponent().path }
    let folders = [own].compactMap(\.self) + search.split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
    return folders.map { "\($0)/\(program)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
