#if HTTPCache
import Foundation
import HTTPTypes
import LarderTesting
import TestSupport
import Testing

@testable import HTTPCachingRules

/// Random bytes, and random changes of valid values, through every parser.
///
/// `LARDER_ROUNDS` multiplies the number of inputs.
struct ParserFuzzTests {
  /// A parser, and values that it accepts.
  private struct Target: Sendable {
    var name: String
    var samples: [String]
    var parse: @Sendable ([UInt8]) -> Void
  }

  private static let targets = [
    Target(
      name: "directives",
      samples: ["max-age=60, no-cache=\"a, b\", private", "stale-while-revalidate=\"5\", a=\"\\\"\", public"],
      parse: { line in
        let control = CacheControl([line])
        #expect((control.noCacheFields + control.privateFields).reduce(0) { $0 + $1.utf8.count } <= line.count)
      }),
    Target(
      name: "dates",
      samples: ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"],
      parse: { bytes in
        guard let date = HTTPDate(bytes, received: 1_800_000_000) else { return }
        // Every date that is read can be written and read again.
        #expect(HTTPDate(Array(date.text.utf8), received: 0) == date)
      }),
    Target(
      name: "tags", samples: ["\"a\", W/\"b\", *", "\"\", \"\\\"", "W/\"\""],
      parse: { bytes in
        var list = EntityTagList()
        list.add(bytes)
        #expect(list.tags.reduce(0) { $0 + $1.bytes.count } <= bytes.count)
        for tag in list.tags { #expect(EntityTag(tag.bytes) == tag) }
      }),
    Target(
      name: "ranges", samples: ["bytes=0-1,-5, 7-", "bytes=99999999999999999999-"],
      parse: { bytes in
        for range in ByteRange.ranges(in: bytes) ?? [] {
          guard let part = range.bytes(of: 1_000) else { continue }
          #expect(part.lowerBound >= 0 && part.upperBound <= 1_000 && !part.isEmpty)
        }
      }),
    Target(
      name: "Content-Range", samples: ["bytes 0-4/10", "bytes */10", "bytes 5-5/*"],
      parse: { bytes in
        guard let range = ContentRange(bytes) else { return }
        #expect(ContentRange(Array(range.text.utf8)) == range)
      }),
    Target(
      name: "Vary and the other fields of a response", samples: ["Accept, *, Color", "12, 13", "a;b=\"c\""],
      parse: { bytes in
        var fields = HTTPFields()
        for name in ["Vary", "Age", "Date", "ETag", "Expires", "Last-Modified", "Content-Length", "Cache-Control"] {
          fields.append(HTTPField(name: HTTPField.Name.named(name), value: bytes))
        }
        let facts = ResponseFacts(fields, received: 0)
        #expect((facts.vary ?? []).reduce(0) { $0 + $1.utf8.count } <= bytes.count)
        #expect(facts.age >= 0 && (facts.contentLength ?? 0) >= 0)
      }),
    Target(
      name: "selecting fields", samples: ["en, de;q=0.5", "\"a , b\" , c", "text/html;a=\"B\""],
      parse: { bytes in
        for name in ["accept", "cookie", "color"] {
          let form = RequestValues.normalized([bytes], of: name)
          #expect(form.count <= bytes.count)
          // The order of members is lost, and with it the place of a quote without an end.
          if name != "accept" { #expect(RequestValues.normalized([form], of: name) == form) }
        }
      }),
    Target(
      name: "URLs", samples: ["https://Example.com:443/a/../b?c#d", "//[::1]:80", "../x?y", "http://a@b/"],
      parse: { bytes in
        if let url = try? RequestURL(String(decoding: bytes, as: UTF8.self)) {
          #expect((try? RequestURL(url.text)) == url)
        }
        let base = try? RequestURL("https://example.com/a/b?c")
        if let url = base?.resolving(bytes) { #expect((try? RequestURL(url.text)) == url) }
      }),
    Target(
      name: "targeted fields", samples: ["max-age=60, no-cache=\"a\", b;c=?1", "a=(1 2);d, e=:aGk=:"],
      parse: { _ = CacheControl(targeted: [$0]) }),
  ]

  private static let rounds = 500 * max(1, ConformanceSuite.roundsOfProcess)

  @Test("Random and changed values are read without a crash and stay within the input", arguments: targets.indices)
  func values(index: Int) {
    let target = Self.targets[index]
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: target.name)
    for _ in 0..<Self.rounds {
      var bytes = Array(random.pick(target.samples).utf8)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in .random(in: 0 ... .max, using: &random) }
      case 1: bytes += Array(random.pick(target.samples).utf8)
      default: break
      }
      for _ in 0..<Int.random(in: 0...4, using: &random) where !bytes.isEmpty {
        let position = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes.remove(at: position)
        case 1: bytes[position] = random.pick(Array(" ,;=\"\\*-/:@[]09aZ\u{0}\u{7f}\u{e9}".utf8))
        default: bytes.insert(.random(in: 0 ... .max, using: &random), at: position)
        }
      }
      target.parse(bytes)
    }
  }

  /// Returns the processor time of this thread in nanoseconds that a closure takes, which other processes don't change.
  private static func processorTime(_ body: () -> Void) -> UInt64 {
    let start = threadTime()
    body()
    return threadTime() - start
  }

  private static func threadTime() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  @Test(arguments: targets.indices)
  func `The time is linear in the length`(index: Int) {
    let target = Self.targets[index]
    for pattern in ["\"", ",", "a,", "\\", "/../", "W/\"", "0", "=", " ", "a=\"", "/"] + target.samples {
      func time(_ count: Int) -> UInt64 {
        let bytes = Array(String(repeating: pattern, count: count / pattern.utf8.count).utf8)
        return (0..<3).map { _ in Self.processorTime { target.parse(bytes) } }.min() ?? 0
      }
      let (short, long) = (time(4_000), time(64_000))
      // Sixteen times the input, and some room. Quadratic time would be 256 times as long.
      #expect(long < short * 64 + 1_000_000, "\(target.name): \(pattern), \(short) ns, \(long) ns")
    }
  }
}
#endif
