import Larder
import LarderFiles

extension JSONFile {
  /// Writes a copy of the document as it would be after folding.
  ///
  /// - Throws: ``StoreError``.
  func backup(to destination: String) throws {
    guard contents.snapshot.holes.isEmpty else {
      throw configuration.error(
        .corrupted, during: .backup,
        "\(path) is damaged, so the copy would lack entries; copy the readable entries instead")
    }
    let copy = try StoreCopy(
      JSONFile.files(at: destination), of: JSONFile.files(at: path), store: name, in: fileSystem)
    try copy.write { temporaryPath in
      var replacement = try FileReplacement(of: temporaryPath, like: nil, in: fileSystem)
      _ = try writeDocument(to: &replacement, generation: generation, during: .backup)
    }
  }

  /// Reads all entries from the disk again.
  ///
  /// - Returns: The document, and the entries with the journal applied.
  /// - Throws: ``StoreError``, with a code such as `corrupted` if the files cannot be read as a store.
  func reread() throws -> (loaded: Loaded, entries: JSONEntries) {
    try configuration.reportingFileErrors(during: .verify, message: "the store could not be read") {
      var loaded = try load(try fileSystem.open(path, .read), during: .verify)
      if let journalDamage { loaded.damages.append(journalDamage) }
      var entries = JSONEntries(map: loaded.document.entries, holes: loaded.holes)
      if case .none = journal { return (loaded, entries) }
      let content = try readJournal(try fileSystem.open(journalPath, .read), during: .verify).content
      var displaced: [ArraySlice<UInt8>] = []
      for change in content.batches.joined() {
        entries.map.apply(change, displacing: &displaced)
      }
      return (loaded, entries)
    }
  }

  /// Reads all entries from the disk and checks them.
  ///
  /// - Parameter check: A closure that returns a description of the problem with the text of a value, or `nil` if there
  ///   isn't one.
  func verify(_ check: (StoreKey, ArraySlice<UInt8>) -> String?) throws -> VerificationReport {
    let entries = contents.snapshot
    var report = VerificationReport(entryCount: entries.map.count)
    do {
      let (loaded, stored) = try reread()
      report.findings = loaded.damages
      let lines = TextLines(loaded.text)
      stored.map.forEach { key, value in
        guard let message = check(key, value) else { return }
        let isInDocument =
          loaded.document.entries[key].map { $0.startIndex == value.startIndex && $0 == value } ?? false
        let place = isInDocument ? "\(path), \(lines.place(ofOffset: value.startIndex))" : journalPath
        report.findings.append(VerificationReport.Finding(key: key, place: place, message: message))
      }
      let holes = stored.holes + entries.holes
      for key in JSONFile.differences(entries.map, stored.map) where !holes.contains(where: { $0.contains(key) }) {
        report.findings.append(
          VerificationReport.Finding(
            key: key, place: configuration.path, message: "the entry on disk differs from the one that was written"
          ))
      }
    } catch let error as StoreError where error.code != .ioFailed && error.code != .notPermitted {
      report.findings.append(
        VerificationReport.Finding(key: error.key, place: configuration.path, message: error.message))
    }
    return report
  }

  /// Returns the keys whose values differ between two maps, ignoring whitespace.
  private static func differences(
    _ left: SortedEntries<ArraySlice<UInt8>>, _ right: SortedEntries<ArraySlice<UInt8>>
  ) -> [StoreKey] {
    func compacted(_ text: ArraySlice<UInt8>) -> [UInt8] {
      var bytes: [UInt8] = []
      JSONText.append(compacted: text, to: &bytes)
      return bytes
    }
    var keys: [StoreKey] = []
    left.forEach { key, value in
      if right[key] != value, right[key].map(compacted) != compacted(value) { keys.append(key) }
    }
    right.forEach { key, _ in
      if !left.contains(key) { keys.append(key) }
    }
    return keys.sorted()
  }
}

/// The lines of a text, for converting offsets to lines and columns.
struct TextLines {
  /// The offset of each line.
  private let starts: [Int]

  /// Finds the lines of a text.
  init(_ text: [UInt8]) {
    starts = [0] + text.indices.filter { text[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
  }

  /// Returns a description of the line and column of a byte, both counted from 1.
  func place(ofOffset offset: Int) -> String {
    let index = starts.partitionPoint { $0 <= offset } - 1
    return "line \(index + 1), column \(offset - starts[index] + 1)"
  }
}
