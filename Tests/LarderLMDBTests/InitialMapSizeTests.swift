import Testing

@testable import LarderLMDB

@Suite struct InitialMapSizeTests {
  @Test func manyEnvironmentsUseAtMostAQuarterOfTheAddressSpace() {
    var sum = 0
    for count in 0..<2000 {
      let size = InitialMapSize.size(preferring: 1 << 40, besides: count)
      #expect(size >= 1 << 20)
      sum += size
    }
    #expect(InitialMapSize.size(preferring: 1 << 40, besides: 15) == 1 << 40)
    #expect(InitialMapSize.size(preferring: 1 << 40, besides: 16) == 1 << 39)
    #expect(sum <= (128 << 40) / 4 + 2000 << 20)
  }

  @Test func smallAddressSpacesGetSmallMaps() {
    #expect(InitialMapSize.size(preferring: 1 << 17, besides: 0) == 1 << 17)
    #expect(InitialMapSize.size(preferring: 1 << 17, besides: 5000) == 1 << 17)
  }

  @Test func aMapUsesAPartOfTheFreeAddressSpace() {
    #expect(InitialMapSize.reserve(for: 1 << 40) == 1 << 42)
    #expect(InitialMapSize.reserve(for: .max) == .max)
    #expect(InitialMapSize.reserve(for: 1 << 21) == 8 << 30, "a map of any size leaves address space to the program")
  }

  @Test func aRefusedSizeIsReducedDownToAMebibyte() {
    #expect(InitialMapSize.size(afterRefusalOf: 1 << 40) == 1 << 36)
    #expect(InitialMapSize.size(afterRefusalOf: 1 << 22) == 1 << 20)
    #expect(InitialMapSize.size(afterRefusalOf: 1 << 20) == nil)
  }
}
