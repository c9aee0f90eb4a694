#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file in which Linux tells of memory pressure; what is in it is a ``PressureStall``.
struct PressureFile: Sendable {
  /// The path of the file.
  let path: String

  /// Finds the first file that tells of memory pressure.
  ///
  /// - Parameter paths: Where to look.
  /// - Returns: `nil` where none of them is there and tells.
  init?(firstOf paths: [String]) {
    guard let path = paths.first(where: { PressureFile.stall(at: $0) != nil }) else { return nil }
    self.path = path
  }

  /// Where Linux tells: for the control group of the process, or else for the whole system.
  ///
  /// - Parameters:
  ///   - groups: The file that tells the groups of the process.
  ///   - root: The folder of the groups.
  ///   - system: The file for the whole system.
  static func paths(
    groups: String = "/proc/self/cgroup", root: String = "/sys/fs/cgroup", system: String = "/proc/pressure/memory"
  ) -> [String] {
    let group = text(at: groups).flatMap(ControlGroup.path)
    return [group.map { "\(root)\($0)/memory.pressure" }, system].compactMap { $0 }
  }

  /// What the file tells now; `none` where it does not tell any more.
  var pressure: MemoryPressure {
    PressureFile.stall(at: path)?.pressure ?? .none
  }

  private static func stall(at path: String) -> PressureStall? {
    text(at: path).flatMap { PressureStall($0) }
  }

  /// The text of a file of the system's; `nil` where it cannot be read, which means that the system does not tell.
  private static func text(at path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }
}
