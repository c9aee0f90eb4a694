import Larder
import LarderFiles

/// What an operator does to the files of a queue.
extension QueueLog {
  /// Where a payload stands, for people to read.
  func place(of place: QueuePlace) -> String {
    "\(folder.segmentPath(place.segment)), byte \(place.offset)"
  }

  /// Reads every frame anew.
  ///
  /// - Returns: Where something else stands than a good frame, for people to read.
  /// - Throws: ``StoreError``; `FileError`.
  func damage() throws -> [String] {
    var places: [String] = []
    for (number, size) in sizes {
      let segment = try SegmentFile(number, in: folder, .read, during: .verify)
      var scanner = segment.scanner(upTo: size)
      while let found = try scanner.next() {
        guard case .damage(let range) = found else { continue }
        places.append("\(segment.path), bytes \(range.lowerBound) to \(range.upperBound - 1)")
      }
      if segment.size < size { places.append("\(segment.path), behind byte \(segment.size)") }
    }
    return places
  }

  /// Writes a copy of the files that can be opened as a queue.
  ///
  /// - Throws: ``StoreError``; `FileError`.
  mutating func backup(to destination: String) throws {
    let fileSystem = folder.fileSystem
    guard try fileSystem.attributes(at: destination) == nil else {
      throw folder.error(.invalidArgument, during: .backup, "something is at \(destination) already")
    }
    try synchronize()
    try fileSystem.createDirectory(at: destination)
    var copy = folder
    copy.path = destination
    // The newest first, which says what else must be there: so half a copy is not taken for a whole one.
    for (number, size) in sizes.reversed() {
      let source = try fileSystem.open(folder.segmentPath(number), .read)
      try fileSystem.replaceFile(at: copy.segmentPath(number)) { writer in
        for start in stride(from: 0, to: size, by: 1 << 20) {
          try writer.write(source.readAll(from: start, upTo: min(start + 1 << 20, size)))
        }
      }
    }
    try fileSystem.synchronizeDirectory(at: FilePaths.split(destination).directory)
  }
}
