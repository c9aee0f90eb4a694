import Foundation

/// The time lost for lack of memory, as Linux reports it in `/proc/pressure/memory` or a control group's
/// `memory.pressure`.
///
/// ```
/// some avg10=0.00 avg60=0.00 avg300=0.00 total=0
/// full avg10=0.00 avg60=0.00 avg300=0.00 total=0
/// ```
struct PressureStall: Equatable, Sendable {
  /// The total time when some tasks waited for memory, in microseconds.
  var some: UInt64

  /// The total time when all tasks waited for memory, in microseconds, or 0 if it is not reported.
  var full: UInt64

  /// Parses the text of a pressure file.
  ///
  /// - Parameter text: The text of the file.
  /// - Returns: `nil` if it is not the text of a pressure file.
  init?(_ text: String) {
    var totals: [Substring: UInt64] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ")
      guard let kind = words.first, let word = words.first(where: { $0.hasPrefix("total=") }) else { continue }
      totals[kind] = UInt64(word.dropFirst("total=".count))
    }
    guard let some = totals["some"] else { return nil }
    self.some = some
    full = totals["full"] ?? 0
  }
}

/// Determines the memory pressure from the time lost since the last measurement.
///
/// The averages that the system reports as well stay high long after the pressure has ended.
struct PressureGauge: Sendable {
  /// The share of the time that must be lost.
  static let share = 0.1

  /// The time during which the same pressure is not reported again, because evictions take time to show.
  static let coolDown: Duration = .seconds(10)

  private var last: (stall: PressureStall, time: Duration)?
  private var reported: (pressure: MemoryPressure, time: Duration)?

  /// Returns the pressure since the last measurement, unless it was reported a short time ago.
  ///
  /// - Parameters:
  ///   - stall: The time lost so far, or `nil` if the system no longer reports it.
  ///   - time: The current time.
  mutating func pressure(of stall: PressureStall?, at time: Duration) -> MemoryPressure {
    defer { last = stall.map { ($0, time) } }
    guard let stall, let last, time > last.time else { return .none }
    let limit = (time - last.time) / .microseconds(1) * PressureGauge.share
    func isLost(_ total: KeyPath<PressureStall, UInt64>) -> Bool {
      Double(stall[keyPath: total]) - Double(last.stall[keyPath: total]) >= limit
    }
    let pressure: MemoryPressure = isLost(\.full) ? .critical : isLost(\.some) ? .warning : .none
    if let reported, time - reported.time < PressureGauge.coolDown, pressure <= reported.pressure { return .none }
    if pressure > .none { reported = (pressure, time) }
    return pressure
  }
}

/// A file in which Linux reports memory pressure, in the format of ``PressureStall``.
struct PressureFile: Sendable {
  /// The paths by which the pressure file of a process is found.
  struct Places: Sendable {
    /// The file that lists the control groups of the process.
    var groups = "/proc/self/cgroup"
    /// The link that names its control group namespace.
    var namespace = "/proc/self/ns/cgroup"
    /// The file that lists the mounted file systems.
    var mounts = "/proc/self/mountinfo"
    /// The file that reports the pressure of the whole system.
    var system = "/proc/pressure/memory"
  }

  /// The initial control group namespace of the kernel.
  private static let initialNamespace = "cgroup:[4026531835]"

  /// The path of the file.
  let path: String

  /// Finds the file that reports the pressure on this process, which is that of its control group, or that of the whole
  /// system if it is in no group.
  ///
  /// A process in a group may run short of memory when the system does not, and the other way round.
  ///
  /// - Parameter places: The paths to search.
  /// - Returns: `nil` if the file does not exist or cannot be parsed.
  init?(_ places: Places = Places()) {
    guard let path = PressureFile.path(places) else { return nil }
    self.init(path: path)
  }

  /// Uses the file at a path.
  ///
  /// - Parameter path: The path of the file.
  /// - Returns: `nil` if the file does not exist or cannot be parsed.
  init?(path: String) {
    self.path = path
    guard stall != nil else { return nil }
  }

  /// Returns the expected path of the file.
  static func path(_ places: Places) -> String? {
    // Without this file, the kernel has no control groups.
    guard let text = text(at: places.groups) else { return places.system }
    // One line for each hierarchy, such as `4:memory:/some/group`. The unified hierarchy, which alone reports pressure,
    // is `0::`.
    let groups = text.split(whereSeparator: \.isNewline).compactMap {
      line -> (controllers: Substring, path: Substring)? in
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      return parts.count == 3 ? (parts[1], parts[2]) : nil
    }
    let areRoots = groups.allSatisfy { $0.path == "/" }
    // In its own namespace, the group of a container looks like the root. A kernel without the link has no namespaces.
    let namespace = try? FileManager.default.destinationOfSymbolicLink(atPath: places.namespace)
    if areRoots, (namespace ?? initialNamespace) == initialNamespace { return places.system }
    guard let group = groups.first(where: { $0.controllers.isEmpty })?.path, group != "/" || areRoots,
      let mount = unifiedMount(PressureFile.text(at: places.mounts) ?? "")
    else { return nil }
    let path = group.hasPrefix(mount.root) ? group.dropFirst(mount.root.count) : group
    return "\(mount.path)\(path == "/" ? "" : path)/memory.pressure"
  }

  /// Returns the mount point of the unified hierarchy and the group that is its root.
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

  /// The current contents of the file, or `nil` if it no longer reports pressure.
  var stall: PressureStall? {
    PressureFile.text(at: path).flatMap { PressureStall($0) }
  }

  /// Returns the text of a system file, or `nil` if it cannot be read, which means that the system does not report it.
  private static func text(at path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }
}
