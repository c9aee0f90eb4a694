#if HTTPCache
import Foundation
import LarderTesting
import Testing

@testable import HTTPCachingRules

struct HTTPDateTests {
  private func parse(_ text: String, in year: Int = 2026) -> Int64? {
    HTTPDate(Array(text.utf8), received: Double(year - 1970) * 365.25 * 86_400)?.seconds
  }

  @Test(
    "The three formats, in any case",
    arguments: [
      "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
      "sun, 06 nov 1994 08:49:37 gmt", "SUNDAY, 06-NOV-94 08:49:37 Gmt", "Mon, 06 Nov 1994 08:49:37 GMT",
    ])
  func formats(text: String) {
    #expect(parse(text) == 784_111_777)
  }

  @Test(
    "Anything else is no date",
    arguments: [
      "", "0", "-1", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nov 94 08:49:37 GMT",
      "Sun 06 Nov 1994 08:49:37 GMT", "Sun, 06  Nov  1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
      "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
      "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
      "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT, Sun", "784111777",
      "Sun Nov  6 08:49:37 1994 GMT",
    ])
  func others(text: String) {
    #expect(parse(text) == nil)
  }

  @Test("A year of two digits is at most 50 years ahead")
  func century() {
    #expect(parse("Thursday, 18-Aug-50 02:01:18 GMT") == parse("Thu, 18 Aug 2050 02:01:18 GMT"))
    #expect(parse("Thursday, 18-Aug-94 02:01:18 GMT") == parse("Thu, 18 Aug 1994 02:01:18 GMT"))
    #expect(parse("Thursday, 18-Aug-10 02:01:18 GMT", in: 2085) == parse("Thu, 18 Aug 2110 02:01:18 GMT"))
  }

  @Test func `A leap second is the first second of the next minute`() {
    #expect(parse("Sat, 31 Dec 2016 23:59:60 GMT") == parse("Sun, 01 Jan 2017 00:00:00 GMT"))
  }

  @Test("The first and the last date")
  func ends() {
    #expect(parse("Mon, 01 Jan 0001 00:00:00 GMT") == -62_135_596_800)
    #expect(parse("Sat, 01 Jan 0000 00:00:00 GMT") == nil)
    #expect(parse("Fri, 31 Dec 9999 23:59:60 GMT") == 253_402_300_799)
    #expect(HTTPDate(seconds: .max).text == "Fri, 31 Dec 9999 23:59:59 GMT")
    #expect(HTTPDate(seconds: .min).text == "Mon, 01 Jan 0001 00:00:00 GMT")
    #expect(HTTPDate(seconds: -30_772_797_023).text.contains(" 0994 "))
  }

  @Test func `Every date is read as it is written, and as the C library writes it`() {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "HTTPDate")
    for _ in 0..<2_000 {
      let seconds = Int64.random(in: -30_000_000_000...200_000_000_000, using: &random)
      let text = HTTPDate(seconds: seconds).text
      #expect(parse(text) == seconds, "\(text), seed \(SeededGenerator.seedOfProcess)")
      #expect(text == Duel.text(Int(seconds)), "seed \(SeededGenerator.seedOfProcess)")
    }
  }
}
#endif
