import Larder
import LarderFiles

/// The folder of a queue, with the names of its files and its name in errors.
struct QueueFolder: StoreFiles, Sendable {
  private static let segmentPrefix = "segment-"
  private static let damagePrefix = "damaged-"
  private static let missingPrefix = "missing-"
  private static let endPrefix = "end-"
  private static let reserveName = "reserve"
  private static let lockName = "lock"

  /// The name of the queue, in errors.
  var name: String
  var path: String
  var durability: Durability.File
  var access: StoreAccess
  /// A Boolean value that indicates whether a missing queue is created; a reader never creates one.
  var createsIfMissing: Bool
  /// The size, in bytes, at which the log rolls over to a new segment.
  var segmentSize: Int64
  var fileSystem: any StoreFileSystem

  var lockPath: String { FilePaths.join(path, QueueFolder.lockName) }

  /// The path of the space reserve, a file that is removed when a full disk would block the removal of items.
  var reservePath: String { FilePaths.join(path, QueueFolder.reserveName) }

  func segmentPath(_ number: UInt32) -> String {
    FilePaths.join(path, QueueFolder.segmentPrefix + Hexadecimal.text(of: number))
  }

  /// The path of the end mark, an empty file whose name records how far the log has certainly come.
  func endPath(_ end: SegmentEnd) -> String {
    FilePaths.join(path, QueueFolder.endPrefix + Hexadecimal.text(of: end.number) + "-" + String(end.size, radix: 16))
  }

  /// Returns the end of the log that the name of an end mark records; `nil` for any other name.
  func end(ofName name: String) -> SegmentEnd? {
    let parts = name.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, let number = UInt32(parts[1], radix: 16), let size = Int64(parts[2], radix: 16),
      number < .max >> 1, 0...Int64(UInt32.max) ~= size
    else { return nil }
    let end = SegmentEnd(number: number, size: size)
    return FilePaths.split(endPath(end)).name == name ? end : nil
  }

  /// The path of an empty file that records that a segment was missing.
  func missingPath(_ number: UInt32) -> String {
    FilePaths.join(path, QueueFolder.missingPrefix + Hexadecimal.text(of: number))
  }

  /// A Boolean value that indicates whether the name of a file records damage or a missing segment.
  ///
  /// The segment itself may be gone since.
  func isNoteOfDamage(_ name: String) -> Bool {
    name.hasPrefix(QueueFolder.damagePrefix) && ownerOfTemporaryFile(name) == nil
      || name.hasPrefix(QueueFolder.missingPrefix)
  }

  /// A Boolean value that indicates whether the name of a file records damage in a segment.
  func isNoteOfDamage(_ name: String, inSegment number: UInt32) -> Bool {
    isNoteOfDamage(name) && name.hasPrefix("\(QueueFolder.damagePrefix)\(String(number, radix: 16))-")
  }

  /// The path of the file that preserves a damaged range of a segment.
  func damagePath(segment: UInt32, offset: Int64) -> String {
    FilePaths.join(path, "\(QueueFolder.damagePrefix)\(String(segment, radix: 16))-\(String(offset, radix: 16))")
  }

  /// Returns the number of a segment from the name of its file; `nil` for any other name.
  func segmentNumber(ofName name: String) -> UInt32? {
    guard name.utf8.starts(with: QueueFolder.segmentPrefix.utf8),
      let number = UInt32(name.dropFirst(QueueFolder.segmentPrefix.count), radix: 16),
      FilePaths.split(segmentPath(number)).name == name
    else { return nil }
    return number
  }

  /// A Boolean value that indicates whether a queue without segments may contain a file with this name, because a crash
  /// during creation left it, or because the segments were moved elsewhere.
  func isOwnName(_ name: String) -> Bool {
    name == QueueFolder.lockName || name == QueueFolder.reserveName || isNoteOfDamage(name) || end(ofName: name) != nil
      || ownerOfTemporaryFile(name) != nil
  }

  /// Removes the temporary files of interrupted replacements.
  func removeStaleTemporaryFiles(among names: [String]) throws(FileError) {
    for owner in Set(names.compactMap(ownerOfTemporaryFile)) {
      try fileSystem.removeStaleTemporaryFiles(of: FilePaths.join(path, owner))
    }
  }

  private func ownerOfTemporaryFile(_ name: String) -> String? {
    guard let mark = name.firstRange(of: POSIXFileSystem.temporaryMark) else { return nil }
    let owner = String(name[..<mark.lowerBound])
    let isOwn = owner.hasPrefix(QueueFolder.segmentPrefix) || owner.hasPrefix(QueueFolder.damagePrefix)
    return isOwn ? owner : nil
  }

  /// Returns the error of an item that the disk failed to read.
  func unreadableError(of key: StoreKey, during operation: StoreOperation, _ error: FileError) -> StoreError {
    StoreError(
      .ioFailed, during: operation, store: name, key: key,
      message: operation == .receive
        ? "the item could not be read; it will be delivered later" : "the item could not be read",
      underlying: error, isRetryable: true)
  }
}

/// The files of a queue at one moment.
///
/// Later writes do not change the bytes before these ends.
struct LogSnapshot: Sendable {
  let folder: QueueFolder
  /// The segments in order, with their ends.
  let segments: [SegmentEnd]
  /// The paths of files that record missing segments.
  ///
  /// They may not exist yet.
  let notes: [String]
  /// The permissions and the owner of the files.
  let attributes: FileAttributes

  /// Reads and checks every frame.
  ///
  /// - Returns: The damaged ranges, each with a description and, if it lies in a segment, the segment's number. Damage
  ///   that earlier openings found in segments that are gone since is included.
  /// - Throws: ``StoreError``; `FileError`.
  func damage() throws -> [(place: String, segment: UInt32?, range: Range<Int64>)] {
    var places: [(String, UInt32?, Range<Int64>)] = []
    for end in segments {
      let segment = try SegmentFile(end.number, in: folder, .read, during: .verify)
      var scanner = segment.scanner(upTo: end.size)
      while let found = try scanner.next() {
        guard case .damage(let range) = found else { continue }
        places.append(
          ("\(segment.path), bytes \(range.lowerBound) to \(range.upperBound - 1)", end.number, range))
      }
      if segment.size < end.size {
        places.append(("\(segment.path), after byte \(segment.size)", end.number, segment.size..<end.size))
      }
    }
    let names = try folder.fileSystem.contentsOfDirectory(at: folder.path)
    let found = names.filter(folder.isNoteOfDamage).map { FilePaths.join(folder.path, $0) }
    for note in Set(found + notes).sorted() {
      places.append(("\(note), which records damage found when the queue was opened", nil, 0..<0))
    }
    return places
  }

  /// Writes a copy of the files that can be opened as a queue.
  ///
  /// The copy gets its final name when it is complete.
  ///
  /// - Parameter destination: The path of the copy.
  /// - Throws: ``StoreError``; `FileError`.
  func copy(to destination: String) throws {
    let source = StoreFileSet(at: try folder.fileSystem.canonicalPath(of: folder.path))
    let copy = try StoreCopy(StoreFileSet(at: destination), of: source, store: folder.name, in: folder.fileSystem)
    try copy.write(asFolder: true) { path in
      var copy = folder
      copy.path = path
      try write(into: copy)
    }
  }

  private func write(into copy: QueueFolder) throws {
    let fileSystem = folder.fileSystem
    for end in segments {
      let source = try fileSystem.open(folder.segmentPath(end.number), .read)
      let file = try fileSystem.open(copy.segmentPath(end.number), .createNew)
      try file.adopt(attributes)
      for start in stride(from: 0, to: end.size, by: 1 << 20) {
        let bytes = try source.readAll(from: start, upTo: min(start + 1 << 20, end.size))
        try file.writeAll(bytes, at: start)
      }
      try file.synchronizeThroughInterruptions()
      try file.close()
    }
    if let last = segments.last {
      let file = try fileSystem.open(copy.endPath(last), .createNew)
      try file.adopt(attributes)
      try file.close()
    }
  }
}
