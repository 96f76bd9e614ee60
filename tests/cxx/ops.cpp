// What torch users write, over Jitney's own headers; test_cxx_headers.c calls it.
#include <torch/extension.h>
#include <ATen/ATen.h>
#include <c10/util/Half.h>
#include <pybind11/stl.h>

namespace torch { inline int reopened() { return 7; } }

#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define EXPECT(cond) TORCH_CHECK(cond, "line ", __LINE__, ": " #cond)

torch::Tensor metadata(torch::Tensor x) { // 2 x 3 float32: 0 1 2 / 3 4 5
    CHECK_CONTIGUOUS(x);
    EXPECT(x.defined() && x.dim() == 2 && x.ndimension() == 2 && x.numel() == 6 && x.nbytes() == 24);
    EXPECT(x.size(0) == 2 && x.size(-1) == 3 && x.stride(0) == 3 && x.element_size() == 4);
    EXPECT(x.sizes() == torch::IntArrayRef({2, 3}) && x.sizes().vec() == std::vector<int64_t>({2, 3}) && x.sizes()[1] == 3);
    EXPECT(x.dtype() == torch::kFloat32 && x.scalar_type() == at::ScalarType::Float && std::string(x.dtype().name()) == "float");
    EXPECT(!x.is_cuda() && x.is_cpu() && x.device() == at::kCPU && x.device().str() == "cpu" && !x.type().is_cuda());
    EXPECT(x.is_floating_point() && !x.requires_grad() && x.options().dtype() == at::kFloat);
    EXPECT(x.data_ptr<float>()[5] == 5 && x.const_data_ptr<float>() == x.data<float>() && x.data_ptr() == x.mutable_data_ptr());
    auto a = x.accessor<float, 2>();
    EXPECT(a[1][2] == 5 && a.size(1) == 3);
    EXPECT(torch::reopened() == 7);
    return x;
}

at::Tensor views(const at::Tensor &x) {
    EXPECT(x[1][2].item<float>() == 5 && x[-1].size(0) == 3 && x[1][0].item().isFloatingPoint());
    EXPECT(x.t().sizes() == at::IntArrayRef({3, 2}) && !x.t().is_contiguous() && x.t()[2][1].item<int>() == 5);
    EXPECT(x.t().contiguous().is_contiguous() && x.t().contiguous().data_ptr<float>()[1] == 3);
    EXPECT(x.view({-1}).size(0) == 6 && x.view({3, 2})[1][0].item<float>() == 2 && x.view({1, 2, 1, 3}).stride(1) == 3);
    EXPECT(x.t().reshape({6}).data_ptr<float>()[1] == 3 && x.t().is_non_overlapping_and_dense());
    EXPECT(x.transpose(0, -1).strides() == at::IntArrayRef({1, 3}) && x.permute({1, 0}).size(0) == 3);
    EXPECT(x.slice(1, 1).sizes() == at::IntArrayRef({2, 2}) && x.slice(1, 0, 3, 2).stride(1) == 2 && x.slice(0, -1).size(0) == 1);
    EXPECT(x.slice(1, 1).view({2, 2, 1}).stride(0) == 3 && x.narrow(1, 1, 2)[1][0].item<float>() == 4);
    EXPECT(x.unsqueeze(0).sizes() == at::IntArrayRef({1, 2, 3}) && x.unsqueeze(-1).squeeze().dim() == 2 && x.squeeze(0).dim() == 2);
    EXPECT(x[0].expand({4, -1}).sizes() == at::IntArrayRef({4, 3}) && x[0].expand({4, 3}).stride(0) == 0);
    EXPECT(x.flatten().size(0) == 6 && x.unsqueeze(0).flatten(0, 1).sizes() == at::IntArrayRef({2, 3}));
    EXPECT(x.slice(1, 1).reshape({-1}).data_ptr<float>()[2] == 4); // a copy: 1 2 4 5
    EXPECT(x.select(1, 2).size(0) == 2 && x.as_strided({2}, {2}, 1)[1].item<float>() == 3);
    return x.t();
}

torch::Tensor fresh(torch::Tensor x) {
    auto o = torch::empty_like(x.t());
    EXPECT(o.strides() == x.t().strides());
    auto z = torch::zeros({x.size(0), 3}, x.options().dtype(torch::kInt32));
    EXPECT(z.data_ptr<int>()[0] == 0 && z.dtype() == torch::kInt);
    auto f = torch::full({2}, 1.5), g = torch::full({2}, 3, torch::dtype(torch::kFloat64).device(torch::kCPU));
    EXPECT(f.scalar_type() == torch::kFloat && f.data_ptr<float>()[1] == 1.5f && g.data_ptr<double>()[1] == 3);
    EXPECT(torch::ones(3).sizes() == at::IntArrayRef({3}) && torch::ones_like(x).data_ptr<float>()[5] == 1);
    EXPECT(torch::tensor({1, 2, 3}).data_ptr<int64_t>()[2] == 3 && torch::tensor(2.5).item<double>() == 2.5);
    EXPECT(torch::tensor(std::vector<float>{1.f, 2.f}, torch::kDouble).data_ptr<double>()[1] == 2);
    auto c = x.clone();
    c[0] = 9;
    c[1] = x[0];
    EXPECT(c.data_ptr<float>()[2] == 9 && c.data_ptr<float>()[5] == 2 && x.data_ptr<float>()[0] == 0);
    c.zero_();
    c.fill_(2).copy_(x.to(torch::kDouble));
    EXPECT(c.data_ptr<float>()[5] == 5 && x.to(torch::kFloat).data_ptr() == x.data_ptr() && x.to(x.options(), false, true).data_ptr() != x.data_ptr());
    EXPECT(x.cpu().is_same(x) && x.type_as(c).is_same(x) && x.to(torch::kCPU).is_same(x) && x.to(x.dtype()).is_same(x));
    return c;
}

template <typename T> void twice(T *p, int64_t n) {
    for (int64_t i = 0; i < n; i++) p[i] = p[i] + p[i];
}
torch::Tensor dispatch(torch::Tensor x) {
    AT_DISPATCH_FLOATING_TYPES(x.type(), "dispatch", ([&] { twice<scalar_t>(x.data_ptr<scalar_t>(), x.numel()); }));
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "dispatch2", [&] { twice(x.data_ptr<scalar_t>(), x.numel()); });
    return AT_DISPATCH_ALL_TYPES_AND(at::ScalarType::Bool, x.dtype(), "dispatch3", [&]() -> torch::Tensor { return x; });
}

std::string halves() {
    at::Half h = 1.0f / 3, big(70000.f), sub(6e-8f);
    c10::BFloat16 b(3.14159f);
    EXPECT(static_cast<float>(h) == 0.333251953125f && std::isinf(static_cast<float>(big)) && sub.x == 1 && b.x == 0x4049);
    EXPECT(static_cast<float>(h + h) == 0.66650390625f && static_cast<float>(-h) < 0 && (h < 1) && static_cast<float>(h * 2) > 0.6f);
    for (uint32_t bits = 0; bits < 0x7c00; bits++) { // every finite value survives
        at::Half x(static_cast<uint16_t>(bits), at::Half::from_bits());
        EXPECT(at::Half(static_cast<float>(x)).x == bits);
    }
    EXPECT(static_cast<float>(std::numeric_limits<at::Half>::max()) == 65504);
    return "ok";
}

namespace everything { // the usings people write do not collide
using namespace std;
using namespace torch;
using namespace at;
inline optional<Tensor> none() { return nullopt; }
} // namespace everything

using OptionalTensor = c10::optional<torch::Tensor>;
std::tuple<std::vector<torch::Tensor>, int, double, std::string, bool>
types(std::vector<torch::Tensor> list, OptionalTensor none, const std::optional<at::Tensor> &some, std::tuple<int, float> t, at::IntArrayRef d,
      const at::IntArrayRef &e, std::array<bool, 2> m, std::pair<int, std::string> p, at::Scalar s, at::TensorList tensors, int &i,
      const char *text, std::string_view view, uint64_t u, float *address) {
    EXPECT(list.size() == 1 && !none && some && some->numel() == 6 && std::get<1>(t) == 2.5f && d[1] == 2 && e.size() == 1);
    EXPECT(m[0] && !m[1] && p.second == "p" && s.toDouble() == 1.25 && tensors[0].numel() == 6 && i++ == 4);
    EXPECT(std::string(text) == "text" && view == "view" && u == UINT64_MAX && address == nullptr);
    return {list, i, 0.5, "str", true};
}
void nothing() noexcept {}
int over(int a) { return a; }
float over(float a, int b) { return a + b; }
void raise(int what) {
    switch (what) {
    case 0: TORCH_CHECK(false, "value ", 1, " ", 2.5, " ", torch::kHalf, ' ', std::vector<int>{1, 2}, " ", at::Device("cuda:1"));
    case 1: TORCH_CHECK_VALUE(false, "v");
    case 2: TORCH_CHECK_INDEX(what < 0);
    case 3: TORCH_CHECK_NOT_IMPLEMENTED(false, "n");
    case 4: throw py::key_error("k");
    case 5: throw std::out_of_range("o");
    case 6: throw std::invalid_argument("i");
    case 7: throw std::bad_alloc();
    case 8: throw 8;
    case 9: AT_ERROR("e", 9);
    case 10: torch::zeros({1}, torch::kInt32).data_ptr<float>();
    case 11: torch::empty({1}, torch::kCUDA);
    case 12: torch::zeros({2}).size(1);
    case 13: torch::Tensor().numel();
    case 14: TORCH_CHECK_EQ(what, 3, "more");
    case 15: torch::zeros({2})[5];
    case 16: dispatch(torch::zeros({1}, torch::kInt32));
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    using namespace pybind11::literals;
    int captured = 4;
    m.doc() = "module doc";
    m.attr("number") = 3;
    m.attr("list") = std::vector<int>{1, 2};
    m.def("metadata", &metadata, "doc of metadata", py::arg("x").none());
    m.def("views", views, py::call_guard<py::gil_scoped_release>());
    m.def("fresh", torch::wrap_pybind_function(fresh));
    m.def("dispatch", &dispatch);
    m.def("halves", &halves);
    m.def("types", &types, "list"_a, "none"_a, "some"_a = py::none(), "t"_a, "d"_a, "e"_a = std::vector<int64_t>{1, 2}, "m"_a, "p"_a,
          "s"_a = 1.5, "tensors"_a, "i"_a, "text"_a = "x", "view"_a, py::arg("u") = 3, "address"_a = nullptr);
    m.def("nothing", &nothing);
    m.def("over", py::overload_cast<int>(&over), "n"_a = 3);
    m.def("over", static_cast<float (*)(float, int)>(&over));
    m.def("plus", [captured](int a) mutable { return a + captured; }, "doc", "a"_a);
    m.def("same", [](const std::string &s) -> const std::string & { return s; });
    m.def("undefined", [] { return torch::Tensor(); });
    m.def("raise", &raise);
}
