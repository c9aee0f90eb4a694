import Foundation

/// The built tool, run as a process.
enum Tool {
  /// The path of the tool, which is in the folder of the built tests.
  static let path: String = {
    #if canImport(Darwin)
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") } ?? .main
    return bundle.bundleURL.deletingLastPathComponent().appendingPathComponent("larder").path
    #else
    return Bundle.main.bundleURL.appendingPathComponent("larder").path
    #endif
  }()

  /// Runs `larder` with arguments.
  static func larder(_ arguments: String..., input: String = "") async throws -> ToolRun {
    try await ToolRun.run(path, arguments, input: input)
  }

  /// Runs a shell command, in which `$1`, `$2` and so on are the arguments and `larder` is the tool.
  static func shell(_ line: String, _ arguments: String...) async throws -> ToolRun {
    try await ToolRun.run("/bin/sh", ["-c", "larder() { \"\(path)\" \"$@\"; }; \(line)", "sh"] + arguments)
  }
}
