import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct StoreCopyTests {
  @Test func `the summary counts both`() {
    var copy = StoreCopy(batchSize: 10)
    #expect(copy.summary(elapsed: .zero) == "copied 0 entries in 0.0 s, 0 were already equal")
    (copy.progress.copiedCount, copy.progress.equalCount) = (2, 1)
    #expect(copy.summary(elapsed: .milliseconds(1990)) == "copied 2 entries in 1.9 s, 1 was already equal")
  }
}
