import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Space that a queue keeps for a full disk: a file that is given back when something must be written that takes items out.
///
/// While it is spent, nothing may be enqueued: what is left is for leases, acknowledgements and the like, until enough
/// segments could be removed.
struct SpaceReserve: Sendable {
  private enum State: Sendable {
    /// Not looked for yet.
    case unknown
    case there
    case spent
    /// It cannot be had, for reasons that have nothing to do with room.
    case absent
  }

  /// The bytes of the file.
  let size: Int64
  private let path: String
  private let fileSystem: any FileSystem
  private var state = State.unknown

  /// While it is spent: about how many bytes can still be written.
  private(set) var budget: Int64 = 0
  /// While it is spent: the first segment of which its space is taken.
  private(set) var firstSegment: UInt32 = 0
  /// While it is spent: what is kept of it for cleaning.
  private var floor: Int64 = 0
  /// When it was last tried in vain to make it anew, in microseconds.
  private var lastTry: Int64?

  /// How long it takes, at least, until it is tried again to make it anew where the queue itself has given back nothing.
  static let pause: Int64 = 1_000_000

  /// Bytes that no file system compresses; as many as that, and not more, may be missed of the room that is left.
  private static let filling: [UInt8] = (0..<512).flatMap { _ in
    withUnsafeBytes(of: UInt64.random(in: .min ... .max)) { Array($0) }
  }

  /// - Parameter folder: The queue's. A quarter of a segment is kept for it, but 64 KiB at least and 1 MiB at most.
  init(in folder: QueueFolder) {
    size = min(max(folder.segmentSize / 4, 64 << 10), 1 << 20)
    path = folder.reservePath
    fileSystem = folder.fileSystem
  }

  /// Whether it was given back.
  var isSpent: Bool { state == .spent }

  /// Whether it can be given back.
  var isThere: Bool { state == .there }

  /// Whether anything may be leased: what is left otherwise is for what was handed out already, and for cleaning.
  var mayLease: Bool { !isSpent || budget >= floor }

  /// How many items there may be of which the last record stands where its space is taken: so few that to write them anew
  /// always gives space back.
  var stateLimit: Int { Int(clamping: max(size, budget) / 8 / 48) }

  /// How many bytes the ids of the items of a segment may take, so that remembering all of them, and the leases of the
  /// items, leaves half of it.
  var idLimit: Int { Int(size / 4) }

  /// From how many bytes on a new segment is begun while it is spent.
  var segmentLimit: Int64 { size / 8 }

  /// Makes the file where it is missing.
  ///
  /// - Parameters:
  ///   - existing: The permissions and the owner that it gets.
  ///   - now: The time, in microseconds.
  ///   - segment: The segment that is written.
  /// - Throws: `FileError`, but not where there is no room: then it counts as spent.
  mutating func make(like existing: FileAttributes, at now: Int64, in segment: UInt32) throws(FileError) {
    guard state != .there, state != .absent else { return }
    if state == .spent, budget < 2 * size, let lastTry, now < lastTry.addingSaturating(SpaceReserve.pause) { return }
    lastTry = now
    if let found = try fileSystem.attributes(at: path), found.kind == .file, found.size >= size {
      state = .there
      return
    }
    var written: Int64 = 0
    do throws(FileError) {
      try write(like: existing, &written)
      state = .there
    } catch {
      try? fileSystem.removeFile(at: path)
      guard error.isOutOfRoom else {
        // A limit to the size of files, say, is no lack of room.
        guard error.errorNumber == EFBIG else { throw error }
        state = .absent
        return
      }
      if state != .spent { firstSegment = segment + 1 }
      state = .spent
      budget = written
      floor = written / 4
    }
  }

  private func write(like existing: FileAttributes, _ written: inout Int64) throws(FileError) {
    let file = try fileSystem.open(path, .createIfMissing)
    defer { withExtendedLifetime(file) {} }
    try file.adopt(existing)
    while written < size {
      let count = Int(min(size - written, Int64(SpaceReserve.filling.count)))
      var failure: FileError?
      SpaceReserve.filling.withUnsafeBytes { bytes in
        do throws(FileError) {
          try file.writeAll(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: written)
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      written += Int64(count)
    }
    try file.close()
  }

  /// Gives the space back to the file system.
  ///
  /// - Parameter segment: The segment that is written.
  /// - Throws: `FileError`.
  mutating func give(in segment: UInt32) throws(FileError) {
    guard state == .there else { return }
    try fileSystem.removeFile(at: path)
    state = .spent
    firstSegment = segment + 1
    floor = size / 4
    budget = size
    lastTry = nil
    // Some file systems give space back when the removal is durable.
    try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
  }

  /// Notes that bytes were written.
  mutating func spend(_ bytes: Int64) {
    if isSpent { budget -= min(bytes, max(budget, 0)) }
  }

  /// Notes that bytes were given back.
  mutating func gain(_ bytes: Int64) {
    if isSpent { budget = budget.addingSaturating(bytes) }
  }
}

extension FileError {
  /// Whether there was no room for it.
  var isOutOfRoom: Bool { errorNumber == ENOSPC || errorNumber == EDQUOT }
}
