#if os(Linux)
import Foundation

/// Two network namespaces, each with a link to the one of this process.
///
/// If they cannot be created, the reason is printed.
package final class TwoNetworks: Sendable {
  /// A Boolean value that indicates whether the namespaces exist.
  package let areThere: Bool

  /// The addresses of this process on each link, or none.
  package let addresses: [String]

  package init() throws {
    let network = "198.18.\(getpid() & 0xFF)"
    var problem = geteuid() == 0 ? nil : "only root may create network namespaces"
    for link in 0...1 where problem == nil {
      let (name, device) = (Self.name(link), Self.device(link))
      let (own, other) = ("\(network).\(4 * link + 1)/30", "\(network).\(4 * link + 2)/30")
      problem = try Self.run([
        ["netns", "add", name],
        ["link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", name],
        ["address", "add", own, "dev", device],
        ["link", "set", device, "up"],
        ["-n", name, "address", "add", other, "dev", "eth0"],
        ["-n", name, "link", "set", "eth0", "up"],
      ])
    }
    if let problem { print("The processes are in the network of the server: \(problem)") }
    areThere = problem == nil
    addresses = areThere ? ["\(network).1", "\(network).5"] : []
  }

  deinit {
    do {
      // The links end with their namespaces.
      if areThere, let problem = try Self.run((0...1).map { ["netns", "delete", Self.name($0)] }) { print(problem) }
    } catch {
      print(error)
    }
  }

  /// The beginning of a command that runs in a namespace.
  package func command(in link: Int) -> [String] {
    ["ip", "netns", "exec", Self.name(link)]
  }

  /// Cuts a link with `down`, and repairs it with `up`.
  package func set(_ link: Int, _ state: String) throws {
    if let problem = try Self.run([["-n", Self.name(link), "link", "set", "eth0", state]]) {
      throw CocoaError(.featureUnsupported, userInfo: [NSLocalizedDescriptionKey: problem])
    }
  }

  private static func name(_ link: Int) -> String { "larder-\(getpid())-\(link)" }

  private static func device(_ link: Int) -> String { "lrd\(getpid())n\(link)" }

  /// Runs commands of `ip`, and returns the first problem.
  private static func run(_ commands: [[String]]) throws -> String? {
    for command in commands {
      let run = try CommandRun(["ip"] + command)
      guard run.status == 0 else { return "ip \(command.joined(separator: " ")) fails: \(run.errors)" }
    }
    return nil
  }
}
#endif
