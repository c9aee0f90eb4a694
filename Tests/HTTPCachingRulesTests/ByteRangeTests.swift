#if HTTPCache
import Testing

@testable import HTTPCachingRules

struct ByteRangeTests {
  private func ranges(_ text: String) -> [ByteRange]? { ByteRange.ranges(in: Array(text.utf8)) }

  @Test("Ranges")
  func valid() {
    #expect(ranges("bytes=0-4") == [.from(0, through: 4)])
    #expect(ranges("Bytes=5-") == [.from(5, through: nil)])
    #expect(ranges("bytes=-5") == [.suffix(5)])
    #expect(ranges("bytes= 0-0 , -1,") == [.from(0, through: 0), .suffix(1)])
  }

  @Test(
    "A field that must be ignored",
    arguments: [
      "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=4-3", "bytes=1-2 3", "lines=1-2", "bytes 1-2",
      "bytes=0-1,x",
    ])
  func invalid(text: String) {
    #expect(ranges(text) == nil)
  }

  @Test func `Too many ranges are ignored`() {
    let text = (0...ByteRange.largestCount).map { "\($0)-\($0)" }.joined(separator: ",")
    #expect(ranges("bytes=" + text) == nil)
  }

  @Test("The bytes of a representation")
  func bytes() {
    #expect(ByteRange.from(0, through: 4).bytes(of: 10) == 0..<5)
    #expect(ByteRange.from(5, through: nil).bytes(of: 10) == 5..<10)
    #expect(ByteRange.from(5, through: 100).bytes(of: 10) == 5..<10)
    #expect(ByteRange.from(10, through: nil).bytes(of: 10) == nil)
    #expect(ByteRange.suffix(3).bytes(of: 10) == 7..<10)
    #expect(ByteRange.suffix(30).bytes(of: 10) == 0..<10)
    #expect(ByteRange.suffix(0).bytes(of: 10) == nil)
    #expect(ByteRange.suffix(1).bytes(of: 0) == nil)
    #expect(ranges("bytes=99999999999999999999-")?.first?.bytes(of: 10) == nil)
    #expect(ranges("bytes=0-99999999999999999999")?.first?.bytes(of: 10) == 0..<10)
  }

  @Test func `Content-Range`() {
    func parse(_ text: String) -> ContentRange? { ContentRange(Array(text.utf8)) }
    #expect(parse("bytes 0-4/10") == ContentRange(bytes: 0..<5, length: 10))
    #expect(parse("bytes 0-4/*") == ContentRange(bytes: 0..<5, length: nil))
    #expect(parse("bytes */10") == ContentRange(bytes: nil, length: 10))
    for text in [
      "bytes 4-0/10", "bytes 0-10/10", "bytes 0-4", "bytes=0-4/10", "lines 0-4/10", "bytes 0-4/10 x", "bytes */*",
      "foo",
    ] {
      #expect(parse(text) == nil, "\(text)")
    }
    for text in ["bytes 0-4/10", "bytes 0-4/*", "bytes */10"] { #expect(parse(text)?.text == text) }
  }
}
#endif
