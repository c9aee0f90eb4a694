import Foundation

/// A scheduler that runs in several processes, of which one plans jobs at a time.
///
/// Start it in two terminals with the same folder, and end or suspend the one that leads:
///
///     scheduler /tmp/plan a
///     scheduler /tmp/plan b
@main
struct SchedulerCommand {
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard arguments.count == 2, let folder = arguments.first, let name = arguments.last else {
      FileHandle.standardError.write(Data("usage: scheduler FOLDER NAME\n".utf8))
      exit(2)
    }
    let plan = try await Plan(folder: folder, lease: .seconds(1))
    try await plan.run(as: name, every: .milliseconds(50)) { term in
      FileHandle.standardOutput.write(Data("\(name) leads in term \(term)\n".utf8))
    }
  }
}
