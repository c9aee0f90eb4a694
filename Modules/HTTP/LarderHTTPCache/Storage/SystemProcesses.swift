#if HTTPCache
import Foundation
import Larder

extension ProcessTable {
  /// The processes of the system.
  ///
  /// Only Linux identifies processes. On other systems all processes are unknown, so only the times of marks count.
  static let system = ProcessTable(own: identity.identity(ofNumber: getpid()), find: findProcess)

  private static let identity = OwnIdentity(ownIdentity)

  private static func ownIdentity() -> ProcessIdentity? {
    #if os(Linux)
    // The boot has a random identifier, which containers share with their host. Two copies of a virtual machine that was
    // suspended have the same one. Kernels before 5.6 have no namespaces of times.
    guard let boot = text(at: "/proc/sys/kernel/random/boot_id"), let host = text(at: "/proc/sys/kernel/hostname"),
      let numbers = target(ofLink: "/proc/self/ns/pid"), let status = text(at: "/proc/self/stat"),
      let entry = ProcessEntry(status)
    else { return nil }
    // A file system of another namespace is mounted at `/proc`, so that its numbers are not the ones of `kill(2)`.
    guard entry.number == UInt32(getpid()) else { return nil }
    let times = target(ofLink: "/proc/self/ns/time") ?? ""
    let place = Array([host, boot, numbers, times].joined(separator: "\n").utf8)
    return ProcessIdentity(
      place: Array(place.withUnsafeBytes { KeyDigest.digest(of: $0) }.prefix(ProcessIdentity.placeLength)),
      number: entry.number, start: entry.start)
    #else
    return nil
    #endif
  }

  private static func findProcess(_ number: UInt32) -> ProcessFinding {
    #if os(Linux)
    // Zero and negative numbers are groups of processes.
    guard number >= 1, let process = pid_t(exactly: number) else { return .unknown }
    // Not by `/proc`, which can hide the processes of other users.
    if kill(process, 0) != 0, errno == ESRCH { return .none }
    guard let status = text(at: "/proc/\(number)/stat"), let entry = ProcessEntry(status) else { return .unknown }
    return entry.hasEnded ? .none : .started(entry.start)
    #else
    return .unknown
    #endif
  }

  /// Returns the text of a system file, or `nil` if it cannot be read, which means that the system does not say it.
  private static func text(at path: String) -> String? {
    FileManager.default.contents(atPath: path).map {
      String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .newlines)
    }
  }

  /// Returns the target of a symbolic link, or `nil` if there isn't one.
  private static func target(ofLink path: String) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let start = buffer.baseAddress else { return nil }
      let count = readlink(path, start, buffer.count)
      guard count > 0, count < buffer.count else { return nil }
      return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
  }
}

/// The number and the start time of a process, from its file `stat` in `/proc`.
struct ProcessEntry: Sendable, Hashable {
  let number: UInt32

  /// The time when the process started, in ticks since the boot of its host.
  let start: UInt64

  /// A Boolean value that indicates whether the process has ended, and its parent has not asked for its status yet.
  let hasEnded: Bool

  /// Reads a line such as `12 (name) S 1 …`, or returns `nil` if it has another form.
  ///
  /// The name may have any bytes, also parentheses and spaces.
  init?(_ text: String) {
    guard let number = text.split(separator: " ", maxSplits: 1).first.flatMap({ UInt32($0) }), number >= 1,
      let end = text.lastIndex(of: ")")
    else { return nil }
    // The start is the 22nd field of the line. The state, which follows the name, is the third one.
    let fields = text[text.index(after: end)...].split(separator: " ")
    guard fields.count > 19, let start = UInt64(fields[19]) else { return nil }
    (self.number, self.start) = (number, start)
    hasEnded = ["Z", "X"].contains(fields[0])
  }
}
#endif
