import Larder
import Testing

@testable import LarderExpiry

@Suite struct WritePurgeTests {
  @Test func `every sixteenth write purges twice the entries written`() {
    var state = WritePurge()
    for _ in 0..<15 { #expect(state.begin(writing: 1) == nil) }
    #expect(state.begin(writing: 1) == WritePurge.Slice(range: .all, size: 32))
    state.end(remaining: "m"...)
    for _ in 0..<15 { #expect(state.begin(writing: 1) == nil) }
    #expect(state.begin(writing: 1) == WritePurge.Slice(range: "m"..., size: 32))
  }

  @Test func `a large batch is bounded`() {
    var state = WritePurge()
    #expect(state.begin(writing: 20) == WritePurge.Slice(range: .all, size: 40))
    state.end(remaining: nil)
    #expect(state.begin(writing: .max) == WritePurge.Slice(range: .all, size: 128))
    state.end(remaining: nil)
    #expect(state.begin(writing: 0) == nil)
    #expect(state.begin(writing: 1) == nil)
  }

  @Test func `a purge wraps around at the end`() {
    var state = WritePurge()
    #expect(state.begin(writing: 16) != nil)
    state.end(remaining: "m"...)
    #expect(state.begin(writing: 16)?.range == "m"...)
    state.end(remaining: nil)
    #expect(state.begin(writing: 16)?.range == .all)
  }

  @Test func `only one write purges at a time`() {
    var state = WritePurge()
    #expect(state.begin(writing: 16) != nil)
    #expect(state.begin(writing: 40) == nil)
    state.end(remaining: nil)
    // Writes in the meantime count, but an empty write never purges.
    #expect(state.begin(writing: 0) == nil)
    #expect(state.begin(writing: 1) == WritePurge.Slice(range: .all, size: 82))
  }

  @Test func `an empty write never purges`() {
    var state = WritePurge()
    for _ in 0..<100 { #expect(state.begin(writing: 0) == nil) }
  }
}
