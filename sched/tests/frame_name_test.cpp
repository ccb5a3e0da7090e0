// Names of functions as dumps show them. Those on the left are a demangler's.
#include <tuza/sched/rt/report/frame_name.h>

#include <gtest/gtest.h>

#include <string>

namespace tuza::rt {
namespace {

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

TEST(FrameName, HasWhatTheProgramWrote) {
  const struct {
    std::string demangled, shown;
  } cases[] = {
      {"main", "main"},
      {"", ""},
      {"tuza::Chan<int>::recv()", "tuza::Chan<int>::recv()"},
      {"shop::find(" STRING " const&)", "shop::find(std::string const&)"},
      {"shop::(anonymous namespace)::find(std::basic_string_view<char, std::char_traits<char> >)",
       "shop::find(std::string_view)"},
      {"f(std::vector<" STRING ", std::allocator<" STRING " > >)", "f(std::vector<std::string>)"},
      {"f(std::map<int, int, std::less<int>, std::allocator<std::pair<int const, int> > >)",
       "f(std::map<int, int>)"},
      {"f(std::span<std::byte, 18446744073709551615ul>)", "f(std::span<std::byte>)"},
      {"f(std::unique_ptr<Job, std::default_delete<Job> >)", "f(std::unique_ptr<Job>)"},
      {"std::expected<std::vector<int, std::allocator<int> >, tuza::Error> g<int>()",
       "tuza::Result<std::vector<int>> g<int>()"},
      {"std::expected<int, int> g<int>()", "std::expected<int, int> g<int>()"},
      {"bool operator< <int>(A const&, A const&)", "bool operator< <int>(A const&, A const&)"},
      {"A::operator->() const", "A::operator->() const"},
      {"A::operator()(int) const", "A::operator()(int) const"},
      {"f(std::vector<int, std::allocator<in", "f(std::vector<int, std::allocator<in"},  // cut off
  };
  for (const auto& c : cases) EXPECT_EQ(short_name(c.demangled), c.shown);
}

TEST(FrameName, IsShortHoweverLongTheTypesAre) {
  const std::string type = "shop::Order<" + std::string(200, 'x') + ">";
  EXPECT_EQ(short_name("void shop::Store::put<" + type + ">(" + type +
                       ", int)::{lambda(int)#1}::operator()(int) const"),
            "void shop::Store::put<...>(...)::{lambda(int)#1}::operator()(int) const");
  EXPECT_EQ(short_name("shop::put(" + type + ")"), "shop::put(...)");
  EXPECT_EQ(short_name("shop::put(" + type), "shop::put(...");
}

TEST(FrameName, TellsTheProgramFromWhatIsAroundIt) {
  for (const char* name :
       {"tuza::rt::park(bool (*)(tuza::rt::G*, void*), void*, tuza::WaitReason, tuza::rt::PendingWait*)",
        "void tuza::rt::run_closure<tuza::rt::BoundCall<shop::serve()::{lambda()#1}> >(void*)",
        "tuza::rt::(anonymous namespace)::sleep_idle(tuza::rt::M*, long)", "goroutine_main()",
        "tuza_context_entry", "int std::__invoke_impl<int, shop::Job&>(std::__invoke_other, shop::Job&)",
        "std::enable_if<is_invocable_r_v<void, shop::Job&>, void>::type std::__invoke_r<void, "
        "shop::Job&>(shop::Job&)",
        "std::_Function_handler<void (), shop::Job>::_M_invoke(std::_Any_data const&)",
        "std::move_only_function<int ()>::operator()()", "tuza::net::Descriptor::read(long)",
        "tuza::rt::P::operator<(int)",
        "std::enable_if<is_invocable_r_v<int, shop::Job&>, int>::type std::__invoke_r<int, sho",
        "__cxa_throw"})
    EXPECT_TRUE(is_plumbing(name)) << name;
  for (const char* name :
       {"main", "tuza::sleep_for(tuza::rt::AnyDuration)", "tuza::Chan<tuza::rt::G*>::recv()",
        "std::thread::join()", "shop::run(std::function<void ()>)", "shop::rt::park()", "",
        "void shop::each<std::function<void ()> >(std::function<void ()>)",
        "shop::operator<<(std::ostream&, int)",
        "tuza::run<shop::main()::{lambda()#1}>(shop::main()::{lambda()#1}&&)::{lambda()#1}::operator()() "
        "const"})
    EXPECT_FALSE(is_plumbing(name)) << name;
}

TEST(FrameName, IsThatOfTheFunctionWhichAGoroutineRuns) {
  const struct {
    std::string demangled, function;
  } cases[] = {
      {"void tuza::rt::run_closure<tuza::rt::BoundCall<shop::serve()::{lambda()#1}> >(void*)",
       "shop::serve()::{lambda()#1}"},
      {"void tuza::rt::run_closure<shop::T::f()::{lambda(int, char)#1}::operator()() "
       "const::{lambda()#1}>(void*)",
       "shop::T::f()::{lambda(int, char)#1}::operator()() const::{lambda()#1}"},
      {"void tuza::rt::run_closure<tuza::rt::BoundCall<shop::Job<int, char>, int, long> >(void*)",
       "shop::Job<int, char>"},
      {"void tuza::rt::run_closure<tuza::rt::BoundCall<void (*)(int, char), int, char> >(void*)", ""},
      {"void tuza::rt::run_closure<tuza::rt::BoundCall<void (shop::Job::*)(), shop::Job*> >(void*)", ""},
      {"void tuza::rt::run_closure<shop::each(void (*)(int))::{lambda()#1}>(void*)",
       "shop::each(void (*)(int))::{lambda()#1}"},
      {"void tuza::rt::run_closure<std::function<void ()> >(void*)", ""},
      {"void tuza::rt::run_closure<tuza::rt::BoundCall<shop::serve()::{lam", ""},
      {"void shop::each<tuza::rt::run_closure<shop::Job> >()", ""},
      {"shop::serve()", ""},
      {"", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(goroutine_function(c.demangled), c.function) << c.demangled;
}

}  // namespace
}  // namespace tuza::rt
