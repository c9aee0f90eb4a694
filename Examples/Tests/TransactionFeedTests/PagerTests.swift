import Larder
import Testing

@testable import TransactionFeed

@Suite("What a reader of pages loads, and when")
struct PagerTests {
  private let second = PageCursor(after: "1", order: .descending)
  private let third = PageCursor(after: "2", order: .descending)

  @Test("The first page is loaded when it is asked for, each further one as soon as the one before is taken")
  func loadsAhead() {
    var pager = Pager<String>()
    #expect(pager.takePage() == nil)
    #expect(pager.beginLoad() == .beginning)
    pager.finishLoad("page 1", next: second)
    #expect(pager.beginLoad() == nil)

    #expect(pager.takePage() == "page 1")
    #expect(pager.beginLoad() == .after(second))
    pager.finishLoad("page 2", next: third)
    #expect(pager.takePage() == "page 2")
    #expect(pager.beginLoad() == .after(third))
    #expect(!pager.isAtEnd)
    pager.finishLoad("page 3", next: nil)
    #expect(pager.takePage() == "page 3")
    #expect(pager.isAtEnd)
    #expect(pager.beginLoad() == nil)
    #expect(pager.takePage() == nil)
  }

  @Test("One load runs at a time, and what nobody asked for is not taken")
  func loadsOnce() {
    var pager = Pager<String>(start: .after(second))
    pager.finishLoad("from nowhere", next: nil)
    #expect(pager.takePage() == nil)
    #expect(pager.beginLoad() == .after(second))
    #expect(pager.beginLoad() == nil)
    pager.finishLoad("page 2", next: nil)
    pager.finishLoad("page 2 once more", next: third)
    #expect(pager.takePage() == "page 2")
    #expect(pager.isAtEnd)
  }

  @Test("A load that failed is due again, a page that is here stays")
  func triesAgain() {
    var pager = Pager<String>()
    #expect(pager.beginLoad() == .beginning)
    pager.failLoad()
    #expect(pager.takePage() == nil)
    #expect(pager.beginLoad() == .beginning)
    pager.finishLoad("page 1", next: nil)
    pager.failLoad()
    #expect(pager.takePage() == "page 1")
  }
}
