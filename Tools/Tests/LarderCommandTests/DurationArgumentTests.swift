import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct DurationArgumentTests {
  @Test func `a duration can be zero`() {
    let times: [(String, Duration)] = [
      ("0s", .zero), ("0ms", .zero), ("500ms", .milliseconds(500)), ("5m", .seconds(300)), ("1d", .seconds(86_400)),
    ]
    for (text, duration) in times { #expect(DurationArgument(argument: text)?.duration == duration, "\(text)") }
  }

  @Test(arguments: ["", "0", "s", "-1s", "1.5s", "1 s", "9223372036854775807s"]) func `other text is refused`(
    text: String
  ) {
    #expect(DurationArgument(argument: text) == nil)
  }
}
