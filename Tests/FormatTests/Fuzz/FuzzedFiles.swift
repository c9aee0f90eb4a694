import Foundation
import Larder
import LarderFiles
import LarderJSON
import LarderQueue
import LarderTesting

/// Stores on a simulated disk whose files have the bytes of a fuzzer.
///
/// An opening succeeds or is refused. If it is refused, the files stay as they are. If it succeeds, a write survives reopening.
///
/// Behind a checksum, bytes alone hardly get anywhere. An input whose first byte is odd is therefore the content, and its
/// checksums are added here.
enum FuzzedFiles {
  /// The errors of files that cannot be opened, or of entries that cannot be read.
  private static let refusals: Set<StoreError.Code> = [
    .corrupted, .unrecognizedFormat, .versionMismatch, .undecodable, .invalidArgument, .full, .conflict, .invalidKey,
  ]

  /// Runs a body in which stores may only refuse.
  ///
  /// - Returns: `nil` if it was refused.
  private static func allowingRefusal<Result>(_ body: () async throws -> Result) async throws -> Result? {
    do {
      return try await body()
    } catch let error as StoreError where refusals.contains(error.code) {
      return nil
    }
  }

  /// Opens a store, reads and writes.
  static func open<Store: DataStore>(
    _ files: [String: [UInt8]], writing value: Store.Value, open: (SimulatedFileSystem) async throws -> Store
  ) async throws where Store.Value: Equatable {
    let disk = SimulatedFileSystem(seed: 1)
    for (path, content) in files { try disk.place(content, at: path) }
    guard let store = try await allowingRefusal({ try await open(disk) }) else {
      for (path, content) in files {
        try FuzzTarget.expect(disk.content(at: path) == content, "\(path) was refused and changed")
      }
      return
    }
    let entries = try await allowingRefusal { try await store.entries(in: .all, limit: 1_000, order: .ascending) }
    let count = try await allowingRefusal { try await store.count(in: .all) }
    if let entries, let count, count <= 1_000 {
      try FuzzTarget.expect(entries.count == count, "\(entries.count) entries are counted as \(count)")
    }
    let written: Void? = try await allowingRefusal { try await store.setValue(value, forKey: "fuzzed") }
    _ = try await allowingRefusal { try await store.close() }
    guard written != nil else { return }
    let again = try await open(disk)
    try FuzzTarget.expect(try await again.value(forKey: "fuzzed") == value, "a write is lost")
    try await again.close()
  }

  // MARK: JSON

  static let document = Array("{\"larder\":2,\"generation\":1,\"entries\":{\n\"a\":1,\n\"b\":2\n}}\n".utf8)

  static func openJSON(document: [UInt8], journal: [UInt8]?) async throws {
    var files = ["/s.json": document]
    if let journal {
      files["/s.json.journal"] =
        journal.first.map { $0 & 1 == 1 } == true ? checked(lines: journal.dropFirst()) : journal
    }
    try await open(files, writing: 7) { try await JSONFileStore<Int>(path: "/s.json", codec: .json(), fileSystem: $0) }
  }

  /// Adds a first line that continues the document, and a checksum to each line.
  private static func checked(lines: ArraySlice<UInt8>) -> [UInt8] {
    let head = Array("\"journal\":2,\"codec\":\"json\",\"generation\":1}".utf8)
    return ([head[...]] + lines.split(separator: UInt8(ascii: "\n"))).flatMap { line in
      Array("{\"crc32c\":\"\(Hexadecimal.text(of: CRC32C.checksum(of: line)))\",".utf8) + line + [UInt8(ascii: "\n")]
    }
  }

  // MARK: Queues

  static func openQueue(_ bytes: [UInt8]) async throws {
    let segment = bytes.first.map { $0 & 1 == 1 } == true ? framed(Array(bytes.dropFirst())) : bytes
    let disk = SimulatedFileSystem(seed: 1)
    try disk.createDirectory(at: "/queue")
    try disk.place(segment, at: "/queue/segment-00000001")
    let environment = QueueEnvironment(now: { Date(timeIntervalSince1970: 1_800_000_000) })
    func open() async throws -> QueueStore<[UInt8]> {
      try await QueueStore(path: "/queue", codec: .raw, fileSystem: disk, environment: environment)
    }
    guard let queue = try await allowingRefusal({ try await open() }) else { return }
    _ = try await allowingRefusal { try await queue.peek(max: 100) }
    _ = try await allowingRefusal { try await queue.deadLetters(limit: 100) }
    let counts = try await queue.counts()
    let written: Void? = try await allowingRefusal { _ = try await queue.enqueue([QueueInput([7], id: "fuzzed")]) }
    _ = try await allowingRefusal { try await queue.close() }
    guard written != nil else { return }
    let again = try await open()
    let difference = try await again.counts().live + again.counts().dead - counts.live - counts.dead
    // An id of the input may be the same, or be remembered.
    try FuzzTarget.expect(0...1 ~= difference, "the number of items changes by \(difference)")
    try await again.close()
  }

  /// Adds the header of a segment, and puts the records into a frame for each 256 bytes.
  private static func framed(_ records: [UInt8]) -> [UInt8] {
    let (salt, codec): (UInt32, [UInt8]) = (0x1234_5678, Array("raw".utf8))
    var segment = Array("larderQ\n".utf8)
    segment.append(little: 2, count: 4)
    segment.append(little: 50 + codec.count + 4, count: 4)
    segment.append(little: 1, count: 4)
    segment.append(little: 99, count: 8)
    segment.append(little: Int(salt), count: 4)
    segment.append(little: 1, count: 8)
    segment.append(little: 0, count: 8)
    segment.append(little: codec.count, count: 2)
    segment += codec
    segment.append(little: Int(CRC32C.checksum(of: segment)), count: 4)
    // The first record of a segment lists the older ones, of which there are none.
    let content = [7, 0] + records
    for (index, start) in stride(from: 0, to: content.count, by: 256).enumerated() {
      let part = content[start..<min(start + 256, content.count)]
      var frame: [UInt8] = []
      frame.append(little: part.count, count: 4)
      frame.append(little: index + 1, count: 4)
      frame.append(little: 0, count: 4)
      frame += part
      segment.append(little: Int(CRC32C.checksum(of: frame) ^ salt), count: 4)
      segment += frame
    }
    return segment
  }
}

extension [UInt8] {
  /// Appends the lowest bytes of a number, the lowest one first.
  mutating func append(little number: Int, count: Int) {
    for index in 0..<count { append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
  }
}
