import Larder
import LarderFiles

/// The files of a queue at one moment, which others go on to write: what is up to these ends stays as it is.
struct LogSnapshot: Sendable {
  let folder: QueueFolder
  /// In order.
  let segments: [SegmentEnd]
  /// Files that are to say by their names what is missing, and may not be there yet.
  let notes: [String]
  /// The permissions and the owner of the files.
  let attributes: FileAttributes

  /// Reads every frame anew.
  ///
  /// - Returns: Where something else stands than a good frame, in words for people to read, and as a place where it is one
  ///   of a segment; also what earlier openings found, in segments that are gone since.
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
        places.append(("\(segment.path), behind byte \(segment.size)", end.number, segment.size..<end.size))
      }
    }
    let names = try folder.fileSystem.contentsOfDirectory(at: folder.path)
    let found = names.filter(folder.isNoteOfDamage).map { FilePaths.join(folder.path, $0) }
    for note in Set(found + notes).sorted() {
      places.append(("\(note), which tells of what was found when the queue was opened", nil, 0..<0))
    }
    return places
  }

  /// Writes a copy of the files that can be opened as a queue: beside its place, to which it is moved when it is whole.
  ///
  /// - Parameter destination: Its place.
  /// - Throws: ``StoreError``; `FileError`.
  func copy(to destination: String) throws {
    let fileSystem = folder.fileSystem
    guard try fileSystem.attributes(at: destination) == nil else {
      throw folder.error(.invalidArgument, during: .backup, "something is at \(destination) already")
    }
    var copy = folder
    // Another one may be made for the same place.
    copy.path = destination + ".partial-" + String(UInt64.random(in: .min ... .max), radix: 16)
    do {
      try fileSystem.createDirectory(at: copy.path)
      try write(into: copy)
      try fileSystem.rename(copy.path, to: destination)
    } catch {
      // What went wrong says more than that something could not be removed.
      try? LogSnapshot.remove(copy)
      throw error
    }
    try folder.reportingFileErrors(
      during: .backup, message: "the backup is written, but its name may be lost with the power", outcome: .unknown
    ) { try fileSystem.synchronizeDirectory(at: FilePaths.split(destination).directory) }
  }

  private func write(into copy: QueueFolder) throws {
    let fileSystem = folder.fileSystem
    for end in segments {
      let source = try fileSystem.open(folder.segmentPath(end.number), .read)
      let file = try fileSystem.open(copy.segmentPath(end.number), .createNew)
      try file.adopt(attributes)
      for start in stride(from: 0, to: end.size, by: 1 << 20) {
        let bytes = try source.readAll(from: start, upTo: min(start + 1 << 20, end.size))
        try bytes.withUnsafeBytes { try file.writeAll($0, at: start) }
      }
      try file.synchronizeThroughInterruptions()
      try file.close()
    }
    if let last = segments.last {
      let file = try fileSystem.open(copy.endPath(last), .createNew)
      try file.adopt(attributes)
      try file.close()
    }
    try fileSystem.synchronizeDirectory(at: copy.path)
  }

  /// Removes a copy that is not whole.
  ///
  /// - Throws: `FileError`, also where anything else is in the folder.
  private static func remove(_ copy: QueueFolder) throws(FileError) {
    for name in try copy.fileSystem.contentsOfDirectory(at: copy.path)
    where copy.segmentNumber(ofName: name) != nil || copy.end(ofName: name) != nil {
      try copy.fileSystem.removeFile(at: FilePaths.join(copy.path, name))
    }
    try copy.fileSystem.removeFile(at: copy.path)
  }
}
