import Larder
import Testing

@Suite struct JSONSyntaxErrorTests {
  @Test func `counts lines and columns from one in bytes`() {
    let text = Array("a\né🐄x\r\n\nz".utf8)
    let places = (0...text.count).map { JSONSyntaxError("wrong", at: $0, of: text) }
    #expect(places.map(\.line) == [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4, 4])
    #expect(places.map(\.column) == [1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 2])
    #expect(places.map(\.offset) == Array(0...text.count))
    #expect(places[2].description == "line 2, column 1: wrong")
  }

  @Test func `counts from the beginning of a slice`() {
    let error = JSONSyntaxError("wrong", at: 2, of: Array("\n\n\nab\nc".utf8)[3...])
    #expect(error.line == 1)
    #expect(error.column == 3)
  }
}
