import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct TimeToLiveArgumentTests {
  @Test func `a number and a unit are a time to live`() {
    let times: [(String, Duration)] = [
      ("500ms", .milliseconds(500)), ("2s", .seconds(2)), ("5m", .seconds(300)), ("1h", .seconds(3600)),
      ("7d", .seconds(604_800)), ("001s", .seconds(1)), ("9223372036854775807ms", .milliseconds(Int64.max)),
    ]
    for (text, duration) in times { #expect(TimeToLiveArgument(argument: text)?.duration == duration, "\(text)") }
  }

  @Test(arguments: [
    "", "5", "s", "0s", "0ms", "-1s", "+1s", "1.5s", "1 s", " 1s", "1s ", "1S", "1ns", "1w", "1m30s", "٣s",
    "9223372036854775808ms", "9223372036854775807s",
  ])
  func `other text is refused`(text: String) {
    #expect(TimeToLiveArgument(argument: text) == nil)
  }
}
