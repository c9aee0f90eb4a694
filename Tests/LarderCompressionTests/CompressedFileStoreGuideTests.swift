#if Compression
import Foundation
import Larder
import LarderCompression
import TestSupport
import Testing

/// What the guide `Docs/CompressedFileStore.md` shows.
@Suite struct CompressedFileStoreGuideTests {
  @Test func wordsInAFile() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("words.gz")
    let words = try await CompressedFileStore<[String]>(path: path)
    try await words.apply([.set("green", ["verde", "vert"]), .set("red", ["rojo", "rouge"])])
    let red = try words.value(forKey: "red")
    try await words.information.maintenance?.compact()
    try await words.close()
    #expect(red == ["rojo", "rouge"])
    let shown = try CommandRun(["sh", "-c", "zcat \"$1\" | jq -c 'select(has(\"set\"))'", "sh", path])
    #expect(
      shown.lines == [
        "{\"set\":\"green\",\"value\":[\"verde\",\"vert\"]}", "{\"set\":\"red\",\"value\":[\"rojo\",\"rouge\"]}",
      ])
  }

  @Test func thePiecesOfTheGuideStandHere() throws {
    #expect(try Guide("Docs/CompressedFileStore.md").piecesMissing() == [])
  }

  @Test func theProgramForJqIsTheOneThatIsTested() throws {
    let page = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Docs/CompressedFileStore.md")
    let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").map { $0.drop { $0 == " " } }
    for line in CompressedFileStoreOnDiskTests.currentState.split(separator: "\n").dropLast() {
      #expect(lines.contains(line.drop { $0 == " " }), "\(line)")
    }
  }
}
#endif
