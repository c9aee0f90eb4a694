#if Compression
import Larder
import LarderTesting
import Testing

@testable import LarderCompression

@Suite struct BlockCutterTests {
  private func line(_ count: Int) -> [UInt8] {
    [UInt8](repeating: 0x61, count: count - 1) + [0x0A]
  }

  @Test func whatIsCutIsWhatWasGivenAndEveryPieceFits() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "cutting")
    for _ in 0..<20 {
      var cutter = BlockCutter(targetSize: .random(in: 10...20_000, using: &generator))
      var text: [UInt8] = []
      var pieces: [BlockCutter.Piece] = []
      var starts: [(BlockCutter.Place, Int)] = []
      for number in 0..<40 {
        let isLong = Int.random(in: 0..<8, using: &generator) == 0
        let line = line(.random(in: 1...(isLong ? 200_000 : 3_000), using: &generator))
        let (place, complete) = cutter.add(line, note: .set(StoreKey("key \(number)")))
        starts.append((place, text.count))
        text += line
        for piece in complete {
          cutter.learn(textSize: piece.text.count, compressedSize: .random(in: 1...piece.text.count, using: &generator))
        }
        pieces += complete
      }
      if let last = cutter.finish() { pieces.append(last) }
      #expect(cutter.finish() == nil)
      #expect(pieces.flatMap(\.text) == text, "\(SeededGenerator.seedVariable)=\(SeededGenerator.seedOfProcess)")
      var offset = 0
      let offsets = pieces.map { piece in
        defer { offset += piece.text.count }
        return offset
      }
      for (place, start) in starts { #expect(offsets[place.piece] + place.offset == start) }
      for (piece, start) in zip(pieces, offsets) {
        var notes: [UInt8] = []
        for note in piece.notes { note.append(to: &notes) }
        #expect(!piece.text.isEmpty && piece.text.count + notes.count <= BlockCutter.maximumContent)
        #expect(piece.text.count + 13 <= BlockHeader.bodyCapacity(notesCount: notes.count))
        #expect(piece.beginsWithinLine == !starts.contains { $0.1 == start })
        #expect(!piece.notes.isEmpty, "a piece of a line names its key, too")
      }
    }
  }

  @Test func blocksBecomeAsLargeAsTheirTextCompresses() {
    for (ratio, size) in [(1, 4_096), (8, 32_768)] {
      var cutter = BlockCutter()
      var sizes: [Int] = []
      for number in 0..<4_000 {
        for piece in cutter.add(line(100), note: .set(StoreKey(integer: number))).complete {
          sizes.append(piece.text.count)
          cutter.learn(textSize: piece.text.count, compressedSize: piece.text.count / ratio)
        }
      }
      #expect(sizes.suffix(3).allSatisfy { abs($0 - size) < 200 }, "\(sizes.suffix(3))")
    }
  }

  @Test func theNotesOfABaseAreItsFirstAndItsLastKey() {
    var cutter = BlockCutter()
    for key: StoreKey in ["a", "b", "c"] { _ = cutter.add(line(10), note: .entries(first: key, last: key)) }
    #expect(cutter.finish()?.notes == [.entries(first: "a", last: "c")])
  }
}
#endif
