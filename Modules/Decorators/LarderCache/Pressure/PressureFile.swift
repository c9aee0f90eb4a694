#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file in which Linux tells of memory pressure; what is in it is a ``PressureStall``.
struct PressureFile: Sendable {
  /// Where Linux tells of what concerns the finding of the file.
  struct Places: Sendable {
    /// The file that tells the control groups of the process.
    var groups = "/proc/self/cgroup"
    /// The link that tells its namespace of groups.
    var namespace = "/proc/self/ns/cgroup"
    /// The file that tells where file systems are.
    var mounts = "/proc/self/mountinfo"
    /// The file that tells of pressure in the whole system.
    var system = "/proc/pressure/memory"
  }

  /// The namespace of groups that the kernel begins with.
  private static let initialNamespace = "cgroup:[4026531835]"

  /// The path of the file.
  let path: String

  /// Finds the file that tells of pressure on this process: that of its control group, or that of the whole system where
  /// the process is in no group.
  ///
  /// A process in a group may run short of memory when the system does not, and the other way round.
  ///
  /// - Parameter places: Where to look.
  /// - Returns: `nil` where that file is not there, or does not tell.
  init?(_ places: Places = Places()) {
    guard let path = PressureFile.path(places) else { return nil }
    self.init(path: path)
  }

  /// Uses a file.
  ///
  /// - Parameter path: Where it is.
  /// - Returns: `nil` where it is not there, or does not tell.
  init?(path: String) {
    self.path = path
    guard stall != nil else { return nil }
  }

  /// Finds where the file is to be.
  static func path(_ places: Places) -> String? {
    // Without the file the kernel has no control groups.
    guard let text = text(at: places.groups) else { return places.system }
    // A line for each hierarchy, `4:memory:/some/group`. The unified one, which alone tells of pressure, is `0::`.
    let groups = text.split(whereSeparator: \.isNewline).compactMap {
      line -> (controllers: Substring, path: Substring)? in
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      return parts.count == 3 ? (parts[1], parts[2]) : nil
    }
    let areRoots = groups.allSatisfy { $0.path == "/" }
    // In a namespace of its own the group of a container looks like the root. A kernel without the link has no namespaces.
    let namespace = try? FileManager.default.destinationOfSymbolicLink(atPath: places.namespace)
    if areRoots, (namespace ?? initialNamespace) == initialNamespace { return places.system }
    guard let group = groups.first(where: { $0.controllers.isEmpty })?.path, group != "/" || areRoots,
      let mount = unifiedMount(PressureFile.text(at: places.mounts) ?? "")
    else { return nil }
    let path = group.hasPrefix(mount.root) ? group.dropFirst(mount.root.count) : group
    return "\(mount.path)\(path == "/" ? "" : path)/memory.pressure"
  }

  /// Where the unified hierarchy is, and which group is the root there.
  private static func unifiedMount(_ text: String) -> (root: Substring, path: Substring)? {
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ")
      guard words.count > 4, let dash = words.firstIndex(of: "-"), words.dropFirst(dash + 1).first == "cgroup2" else {
        continue
      }
      return (words[3] == "/" ? "" : words[3], words[4])
    }
    return nil
  }

  /// What the file tells now; `nil` where it does not tell any more.
  var stall: PressureStall? {
    PressureFile.text(at: path).flatMap { PressureStall($0) }
  }

  /// The text of a file of the system's; `nil` where it cannot be read, which means that the system does not tell.
  private static func text(at path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }
}
