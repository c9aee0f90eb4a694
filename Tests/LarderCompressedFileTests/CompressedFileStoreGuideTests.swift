#if Compression
import Foundation
import Larder
import LarderCompressedFile
import TestSupport
import Testing

/// The code of the guide `Modules/Stores/LarderCompressedFile/LarderCompressedFile.docc/UsingCompressedFileStore.md`.
@Suite struct CompressedFileStoreGuideTests {
  @Test func `words in a file`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("words.gz")
    // snippet.overview
    let words = try await CompressedFileStore<[String]>(path: path)
    try await words.apply([.set("green", ["verde", "vert"]), .set("red", ["rojo", "rouge"])])
    let red = try words.value(forKey: "red")
    try await words.compact()
    try await words.close()
    // snippet.end
    #expect(red == ["rojo", "rouge"])
    let shown = try CommandRun(["sh", "-c", "zcat \"$1\" | jq -c 'select(has(\"set\"))'", "sh", path])
    #expect(
      shown.lines == [
        "{\"set\":\"green\",\"value\":[\"verde\",\"vert\"]}", "{\"set\":\"red\",\"value\":[\"rojo\",\"rouge\"]}",
      ])
  }

  @Test func `reading skips damage`() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("words.gz")
    let store = try await CompressedFileStore<[String]>(path: path)
    for number in 100..<160 { try await store.setValue(["\(number)"], forKey: "word \(number)") }
    try await store.close()
    var content = try Data(contentsOf: URL(filePath: path))
    let place = try #require(content.range(of: Data("{\"set\":\"word 130\"".utf8)))
    content[place.lowerBound + 2] ^= 1
    try content.write(to: URL(filePath: path))
    let words = try await CompressedFileStore<[String]>(path: path, access: .readOnly)
    // snippet.damage
    var found: [StoreEntry<[String]>] = []
    var ranges: [KeyRange] = [.all]
    while let range = ranges.popLast() {
      do {
        let page = try await words.entries(in: range, limit: 100, order: .ascending)
        found += page
        if let last = page.last { ranges.append(range.after(last.key)) }
      } catch let error as StoreError {
        guard let lost = (error.underlying as? DamagedBlockError)?.keys else { throw error }
        print("\(lost) cannot be read")
        // Read the entries before the lost range first, then those after it.
        if let end = lost.upperBound { ranges.append(KeyRange(from: end, upTo: range.upperBound)) }
        ranges.append(range.before(lost.lowerBound))
      }
    }
    // snippet.end
    #expect(found.map(\.key) == (100..<160).filter { $0 != 130 }.map { "word \($0)" })
    try await words.close()
  }

  private static let path = "Modules/Stores/LarderCompressedFile/LarderCompressedFile.docc/UsingCompressedFileStore.md"

  @Test func `the guide shows the tested jq program`() throws {
    let page = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../\(CompressedFileStoreGuideTests.path)")
    let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").map { $0.drop { $0 == " " } }
    for line in CompressedFileStoreOnDiskTests.currentState.split(separator: "\n").dropLast() {
      #expect(lines.contains(line.drop { $0 == " " }), "\(line)")
    }
  }
}
#endif
